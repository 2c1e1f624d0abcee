import { setTimeout } from "node:timers/promises";
import { dns } from "bun";
import type { AppDependencies } from "../compose/work.ts";
import type { Config, Environment } from "../config.ts";
import { createLog, type LogLevel } from "../lib/log.ts";

export function randomBytes(n: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(n));
}

/** Resolves a host name with c-ares. The system's look-ups share two threads, which two hung look-ups would block. */
export async function resolveName(host: string): Promise<string[]> {
  return (await dns.lookup(host, { backend: "c-ares" })).map(({ address }) => address);
}

/** Sleeps until the time is over or the signal aborts. After an abort no timer keeps the process alive. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => undefined);
}

/** The environment at the start. Commands add settings from files to `process.env` later. */
export const INITIAL_ENVIRONMENT: Readonly<Environment> = Object.freeze({ ...process.env });

/**
 * Returns the real clock, network and randomness.
 * @param logLevel a function, if the level can change
 */
export function dependencies(logLevel: LogLevel | (() => LogLevel)): AppDependencies {
  return {
    now: Date.now,
    clock: () => performance.now(),
    random: randomBytes,
    fetch,
    resolve: resolveName,
    sleep,
    log: createLog(logLevel, process.stderr, Date.now),
  };
}

/**
 * Sends a fetch, so that Bun starts its fetch thread and reads the certificates now. If Bun started the thread later,
 * when no file descriptor is free, the program would end. This fetch fails on purpose: its socket does not exist.
 */
export function prepareFetch(): void {
  fetch("https://sds.invalid/", { unix: "/dev/null/none" }).catch(() => undefined);
}

/** Returns the command of this program: the executable alone, or Bun with the source. */
export function programCommand(): string[] {
  return Bun.main.includes("$bunfs") ? [process.execPath] : [process.execPath, Bun.main];
}

/** Maximum number of concurrent fetches in Bun, unless the environment sets another limit. */
const DEFAULT_FETCHES = 256;
/** Number of concurrent fetches that are reserved for work other than deliveries. */
const SPARE_FETCHES = 32;
/** Number of concurrent fetches that are reserved for posts that are forwarded to another node. */
const FORWARDED_POSTS = 256;

/**
 * Allows enough concurrent fetches for the configured deliveries. Bun queues the fetches above its limit, so hanging
 * endpoints would delay all other fetches. Only an environment variable raises the limit. So the process restarts
 * itself with the variable by exec, which keeps the process id.
 */
export function raiseFetchLimit({ deliveryConcurrency, nodeUrl }: Config): void {
  const name = "BUN_CONFIG_MAX_HTTP_REQUESTS";
  const needed = deliveryConcurrency + SPARE_FETCHES + (nodeUrl === null ? 0 : FORWARDED_POSTS);
  if (Number(process.env[name] ?? DEFAULT_FETCHES) >= needed) return;
  process.execve?.(process.execPath, [...programCommand(), ...process.argv.slice(2)], {
    ...INITIAL_ENVIRONMENT,
    [name]: String(needed),
  });
}
