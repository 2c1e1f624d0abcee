import type { Command } from "commander";
import { SdsError } from "../domain/error.ts";
import { parseDuration, parseUtc } from "../lib/time.ts";

export const SHOP_OPTION = [
  "--shop <domain>",
  "the shop; can be left out if there is only one (env SDS_SHOP)",
] as const;
export const JSON_OPTION = ["--json", "print JSON"] as const;
export const EVENTS_OPTION = ["--events", "queue events for what changes, as if it happened now"] as const;
const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 10_000;
export const LIMIT_OPTION = ["--limit <n>", `how many to list, up to ${MAX_LIMIT}`, String(DEFAULT_LIMIT)] as const;

/** Adds a noun, such as `key`. @returns the noun, to which its commands are added */
export function addNoun(program: Command, name: string, description: string, ...examples: string[]): Command {
  return program
    .command(name)
    .description(description)
    .addHelpText("after", example(...examples));
}

/** Adds the options of every command on one shop, and examples. */
export function onShop(command: Command, ...examples: string[]): Command {
  return command
    .option(...SHOP_OPTION)
    .option(...JSON_OPTION)
    .addHelpText("after", example(...examples));
}

/** Examples for the end of a help text, the same for every command. */
export function example(...lines: string[]): string {
  return `\nExample:\n${lines.map((line) => `  $ ${line}`).join("\n")}\n`;
}

/** @throws SdsError `invalid` */
export function parseLimit(text = String(DEFAULT_LIMIT)): number {
  if (/^\d{1,5}$/.test(text) && Number(text) > 0 && Number(text) <= MAX_LIMIT) return Number(text);
  throw new SdsError("invalid", `--limit is "${text}": it must be a whole number from 1 to ${MAX_LIMIT}`);
}

/** Reads an option that has one of a few values. @throws SdsError `invalid` */
export function parseChoice<T extends string>(name: string, text: string, values: readonly T[]): T {
  const value = values.find((known) => known === text);
  if (value !== undefined) return value;
  throw new SdsError("invalid", `${name} is "${text}": it must be one of ${values.join(", ")}`);
}

/** Reads `--since`, a date or an age. @returns epoch milliseconds. @throws SdsError `invalid` */
export function parseSince(text: string): number {
  const age = parseDuration(text);
  const since = age === undefined ? parseUtc(text) : Date.now() - age;
  if (since !== undefined) return since;
  throw new SdsError("invalid", `--since is "${text}": it must be a date like 2026-01-31T09:30:00Z or an age like 2h`);
}

/** Reads a list that is separated by commas. */
export function splitList(text: string): string[] {
  return text.split(",").map((part) => part.trim());
}
