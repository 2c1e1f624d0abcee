import { setTimeout } from "node:timers/promises";
import { dns } from "bun";
import type { AppDependencies } from "../compose/work.ts";
import type { Config } from "../config.ts";
import { createLog } from "../lib/log.ts";

export function randomBytes(n: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(n));
}

/**
 * Looks up all addresses of a name. It uses c-ares. The system's own look-ups share two threads, and two names whose
 * servers do not answer would delay all other names.
 */
export async function resolveName(host: string): Promise<string[]> {
  return (await dns.lookup(host, { backend: "c-ares" })).map(({ address }) => address);
}

/** Ends early if the signal aborts. Then no timer keeps the process alive. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => undefined);
}

/** The real clock, network and randomness. */
export function dependencies(config: Config): AppDependencies {
  return {
    now: Date.now,
    clock: () => performance.now(),
    random: randomBytes,
    fetch,
    resolve: resolveName,
    sleep,
    log: createLog(config.logLevel, process.stderr, Date.now),
  };
}

/**
 * Lets Bun start the thread of its fetches and read the certificates now. It does so at the first fetch, and without a
 * free descriptor that would end the program. The fetch fails, because its socket does not exist.
 */
export function prepareFetch(): void {
  fetch("https://sds.invalid/", { unix: "/dev/null/none" }).catch(() => undefined);
}

/** Bun's own limit on concurrent fetches, if the environment does not set another. */
const DEFAULT_FETCHES = 256;
/** Fetches that are not deliveries, and some reserve. */
const SPARE_FETCHES = 32;

/**
 * Allows enough concurrent fetches for the configured deliveries. Bun runs a limited number of fetches at once and
 * queues the rest, so endpoints that hang would delay all others, whatever our own limits are. Only an environment
 * variable can raise that limit. If it is too low, the process replaces itself with one that has the variable set,
 * under the same process id.
 */
export function raiseFetchLimit({ deliveryConcurrency }: Config): void {
  const name = "BUN_CONFIG_MAX_HTTP_REQUESTS";
  const needed = deliveryConcurrency + SPARE_FETCHES;
  if (Number(process.env[name] ?? DEFAULT_FETCHES) >= needed) return;
  const source = Bun.main.includes("$bunfs") ? [] : [Bun.main];
  process.execve?.(process.execPath, [process.execPath, ...source, ...process.argv.slice(2)], {
    ...process.env,
    [name]: String(needed),
  });
}
