import { setTimeout } from "node:timers/promises";
import { dns } from "bun";
import type { Dependencies } from "../app.ts";
import type { Config } from "../config.ts";
import { createLog } from "../log.ts";
import { randomBytes } from "./context.ts";

/**
 * All addresses of a name. With c-ares, for the system's own look-ups share two threads: two names whose servers don't answer
 * would hold up every other name.
 */
export async function resolveName(host: string): Promise<string[]> {
  return (await dns.lookup(host, { backend: "c-ares" })).map(({ address }) => address);
}

/** Ends with the signal, and then leaves no timer behind that would keep the process alive. */
async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => undefined);
}

/** The real world. */
export function dependencies(config: Config): Dependencies {
  return { now: Date.now, random: randomBytes, fetch, resolve: resolveName, sleep, log: createLog(config.logLevel, process.stderr, Date.now) };
}

/** Bun's own limit on fetches at once, where its environment doesn't say otherwise. */
const DEFAULT_FETCHES = 256;
/** Fetches beside deliveries, and some air. */
const SPARE_FETCHES = 32;

/**
 * Bun runs a limited number of fetches at once and queues the rest, so that hanging endpoints would starve the others however our own
 * places are shared. The limit can be raised from the environment alone: where it is too low for the deliveries wanted, the process becomes
 * itself again with the variable set, under the same pid.
 */
export function raiseFetchLimit({ deliveryConcurrency }: Config): void {
  const name = "BUN_CONFIG_MAX_HTTP_REQUESTS";
  const wanted = deliveryConcurrency + SPARE_FETCHES;
  if (Number(process.env[name] ?? DEFAULT_FETCHES) >= wanted) return;
  const source = Bun.main.includes("$bunfs") ? [] : [Bun.main];
  process.execve?.(process.execPath, [process.execPath, ...source, ...process.argv.slice(2)], { ...process.env, [name]: String(wanted) });
}
