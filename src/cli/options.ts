import type { Option } from "commander";
import { invalid } from "../domain/error.ts";
import { parseDuration, parseUtc } from "../lib/time.ts";

const MAX_LIMIT = 10_000;

// Options that several commands share, in the form of the arguments of commander's `option`.
export const EVENTS_OPTION = ["--events", "queue events for what changes, as if it happened now"] as const;
export const LIMIT_OPTION = ["--limit <n>", `how many to list, up to ${MAX_LIMIT}`, parseLimit, 20] as const;

/** Returns the arguments of commander's `option` for an option that accepts only `values`. */
export function choiceOption<T extends string>(flags: string, description: string, values: readonly T[]) {
  const [name = ""] = flags.split(" ");
  const parse = Object.assign((text: string) => parseChoice(name, text, values), { choices: values });
  return [flags, `${description}: ${values.join(", ")}`, parse] as const;
}

/** Returns the values of an option that `choiceOption` made; for any other option, an empty list. */
export function choicesOf({ parseArg }: Option): readonly string[] {
  return (parseArg as { choices?: readonly string[] } | undefined)?.choices ?? [];
}

/** @throws SdsError `invalid` */
export function parseChoice<T extends string>(name: string, text: string, values: readonly T[]): T {
  const value = values.find((known) => known === text);
  if (value !== undefined) return value;
  throw invalid(`${name} is "${text}": it must be one of ${values.join(", ")}`);
}

/** @throws SdsError `invalid` */
export function parseLimit(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) > 0 && Number(text) <= MAX_LIMIT) return Number(text);
  throw invalid(`--limit is "${text}": it must be a whole number from 1 to ${MAX_LIMIT}`);
}

/** Reads `--since`, a date or an age. @returns epoch milliseconds. @throws SdsError `invalid` */
export const parseSince = timeParser("--since");

/** Returns a parser for an option whose value is a date or an age. @param name the option, for the error message */
export function timeParser(name: string): (text: string) => number {
  return (text) => {
    const age = parseDuration(text);
    const time = age === undefined ? parseUtc(text) : Date.now() - age;
    if (time !== undefined) return time;
    throw invalid(`${name} is "${text}": it must be a date like 2026-01-31T09:30:00Z or an age like 2h`);
  };
}

/** Reads a list that is separated by commas. */
export function splitList(text: string): string[] {
  return text.split(",").map((part) => part.trim());
}
