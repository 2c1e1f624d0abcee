import type { Command } from "commander";
import { type Config, readConfig } from "../config.ts";
import { SdsError } from "../domain/error.ts";
import { parseDomain, type Shop } from "../domain/shop.ts";
import { parseDuration, parseUtc } from "../lib/time.ts";
import { openStore } from "../store/open-store.ts";
import type { Store } from "../store/store.ts";

export function randomBytes(n: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(n));
}

/** The configuration as `--data` and the environment have it. */
export function configOf(command: Command): Config {
  return readConfig(command.optsWithGlobals(), process.env);
}

/** Runs one command on the store and closes it, whatever happens. */
export async function withStore<T>(command: Command, run: (store: Store) => Promise<T>): Promise<T> {
  const { data, masterKeyFile } = configOf(command);
  const store = await openStore({ folder: data, masterKeyFile, busyTimeoutMs: 30_000, random: randomBytes });
  try {
    return await run(store);
  } finally {
    await store.close();
  }
}

/** @throws SdsError `not_found` */
export async function findShop(store: Store, domain: string): Promise<Shop> {
  const shop = await store.shops.find(parseDomain(domain));
  if (shop === undefined) throw new SdsError("not_found", `there is no shop ${domain}`);
  return shop;
}

/** The shop that `--shop` names, or the only one there is. */
export async function chooseShop(store: Store, domain: string | undefined): Promise<Shop> {
  if (domain !== undefined) return findShop(store, domain);
  const [shop, ...others] = await store.shops.list();
  if (shop === undefined) throw new SdsError("not_found", "there is no shop yet: add one with `sds shop add alpha.myshopify.com`");
  if (others.length > 0) throw new SdsError("invalid", `there are ${others.length + 1} shops: say which with --shop, for instance --shop ${shop.domain}`);
  return shop;
}

/** Reads a secret on stdin: never from the command line, where other users and the shell's history would see it. */
export async function readSecret(what: string): Promise<string> {
  const secret = (await Bun.stdin.text()).trim();
  if (secret !== "" && secret.length <= 4096 && /^[\x21-\x7e]+$/.test(secret)) return secret;
  throw new SdsError("invalid", `stdin has no ${what}: it must be one line without blanks`);
}

export const DEFAULT_LIMIT = 20;
export const MAX_LIMIT = 10_000;

export function parseLimit(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) > 0 && Number(text) <= MAX_LIMIT) return Number(text);
  throw new SdsError("invalid", `--limit is "${text}": it must be a whole number from 1 to ${MAX_LIMIT}`);
}

export function choose<T extends string>(name: string, text: string, values: readonly T[]): T {
  const value = values.find((known) => known === text);
  if (value !== undefined) return value;
  throw new SdsError("invalid", `${name} is "${text}": it must be one of ${values.join(", ")}`);
}

/** @returns epoch milliseconds */
export function parseSince(text: string): number {
  const age = parseDuration(text);
  const since = age === undefined ? parseUtc(text) : Date.now() - age;
  if (since !== undefined) return since;
  throw new SdsError("invalid", `--since is "${text}": it must be a date like 2026-01-31T09:30:00Z or an age like 2h`);
}

export const SHOP_OPTION = ["--shop <domain>", "the shop; may be left out where there is only one"] as const;
export const JSON_OPTION = ["--json", "print JSON"] as const;

/** The same for every command, so that nobody has to look for it. */
export function example(...lines: string[]): string {
  return `\nExample:\n${lines.map((line) => `  $ ${line}`).join("\n")}\n`;
}
