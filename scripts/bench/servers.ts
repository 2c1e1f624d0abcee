import { readFileSync } from "node:fs";
import { join } from "node:path";
import { $ } from "bun";
import { listeningUrl } from "../listening-url.ts";

/** Client and server run on different cores, so that the client does not slow the server. */
const ON_SERVER_CORE = ["taskset", "-c", "0"];
const ON_LOAD_CORE = ["taskset", "-c", "1"];
/** A prefix for commands: the program is killed when the bench ends. */
const WITH_BENCH = ["setpriv", "--pdeathsig", "SIGKILL"];
const CONNECTIONS = 16;
const START_TIMEOUT_MS = 20_000;
/** The timeout of a run. */
const RUN_TIMEOUT_MS = 1_800_000;
/** A warning is printed if the ratio of the best to the worst round is above this. */
const SPREAD = 1.3;

export interface Server extends AsyncDisposable {
  url: string;
  pid: number;
}

/** The command that starts an sds on a data folder. */
export function serveCommand(program: string, folder: string): string[] {
  return [program, "--data", folder, "serve", "--port", "0"];
}

/**
 * Starts a program that prints `listening on URL` on stderr. The program is killed when the bench ends, also after an
 * error.
 */
export async function startServer(command: string[], env: Record<string, string> = {}): Promise<Server> {
  const program = Bun.spawn([...WITH_BENCH, ...command], {
    env: { ...process.env, SDS_LOG: "error", ...env },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const stop = async () => {
    program.kill();
    await program.exited;
  };
  const overdue = setTimeout(() => program.kill("SIGKILL"), START_TIMEOUT_MS);
  try {
    const url = await listeningUrl(program.stderr, (text) => {
      if (!text.startsWith("listening on")) process.stderr.write(text);
    });
    return { url, pid: program.pid, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw new Error(`${command.join(" ")} did not start`, { cause: error });
  } finally {
    clearTimeout(overdue);
  }
}

/** Starts a server on the servers' core. */
export function startPinnedServer(command: string[], env?: Record<string, string>): Promise<Server> {
  return startServer([...ON_SERVER_CORE, ...command], env);
}

/** Waits until a condition is met. @throws Error after half an hour */
export async function waitUntil(isMet: () => boolean, intervalMs: number): Promise<void> {
  for (const start = performance.now(); !isMet(); await Bun.sleep(intervalMs))
    if (performance.now() - start > RUN_TIMEOUT_MS) throw new Error("sds took too long");
}

export interface Run {
  printed: string;
  seconds: number;
  peakMemoryMb: number;
}

/** Runs a program to its end on the servers' core. @throws Error for an exit status other than 0 */
export async function runPinned(command: string[], env: Record<string, string> = {}): Promise<Run> {
  const start = performance.now();
  const program = Bun.spawn([...ON_SERVER_CORE, ...WITH_BENCH, ...command], {
    env: { ...process.env, ...env },
    stdin: "ignore",
    stderr: "pipe",
    timeout: RUN_TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
  const output = [program.stdout.text(), program.stderr.text()] as const;
  const [printed, errors, status] = await Promise.all([...output, program.exited]);
  if (status !== 0) throw new Error(`${command.join(" ")} ended with ${program.signalCode ?? status}: ${errors}`);
  const peakMemoryMb = (program.resourceUsage()?.maxRSS ?? Number.NaN) / 1e6;
  return { printed, seconds: (performance.now() - start) / 1_000, peakMemoryMb };
}

/** Installs Fastify, better-sqlite3 and BullMQ once, because compiling native code takes minutes. */
export async function installBaseline(): Promise<void> {
  const folder = join(import.meta.dir, "baseline");
  const installed = Bun.file(join(folder, "node_modules/.package-lock.json"));
  if ((await installed.exists()) && installed.lastModified >= Bun.file(join(folder, "package.json")).lastModified)
    return;
  process.stderr.write("Installing Fastify, better-sqlite3 and BullMQ, once ...\n");
  await $`npm install --no-package-lock --no-audit --no-fund --loglevel=error`.cwd(folder).quiet();
}

export interface Load {
  server: Server;
  key: string;
  /** A file with the path of a request on each line. */
  paths: string;
  headers?: Record<string, string>;
}

/** Reads pages with wrk. @returns pages per second */
export async function ask(
  { server, key, paths, headers = {} }: Load,
  seconds: number,
  connections = CONNECTIONS,
): Promise<number> {
  const script = join(import.meta.dir, "load.lua");
  const all = { Authorization: `Bearer ${key}`, ...headers };
  const options = Object.entries(all).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  const printed =
    await $`${ON_LOAD_CORE} wrk -t1 -c${connections} -d${seconds}s -s ${script} ${options} ${server.url} -- ${paths}`
      .quiet()
      .text();
  return rateIn(printed);
}

/** Reads what load.lua prints. @returns requests per second. @throws Error if a request failed */
export function rateIn(printed: string): number {
  const [, requests, failed, microseconds] = /^result (\d+) (\d+) (\d+)$/m.exec(printed)?.map(Number) ?? [];
  if (requests === undefined || microseconds === undefined || failed !== 0)
    throw new Error(`wrk met errors:\n${printed}`);
  return requests / (microseconds / 1e6);
}

/**
 * Measures the servers in turn, because the speed of the machine varies.
 * @returns the median pages per second of each server
 */
export async function pagesPerSecond<Name extends string>(
  loads: Record<Name, Load>,
  rounds = 3,
  seconds = 4,
): Promise<Record<Name, number>> {
  const names = Object.keys(loads) as Name[];
  for (const name of names) await ask(loads[name], 2);
  const measured = new Map<Name, number[]>(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, rates] of measured) rates.push(await ask(loads[name], seconds));
  }
  for (const [name, rates] of measured) warnOfSpread(name, rates);
  return Object.fromEntries([...measured].map(([name, rates]) => [name, median(rates)])) as Record<Name, number>;
}

function warnOfSpread(name: string, rates: readonly number[]): void {
  const [least, most] = [Math.min(...rates), Math.max(...rates)];
  if (most > SPREAD * least)
    process.stderr.write(
      `${name}: rounds from ${Math.round(least)}/s to ${Math.round(most)}/s, so something else was at work\n`,
    );
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const above = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? above : (above + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/** @param share 0.99 for the 99th percentile */
export function percentile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? Number.NaN;
}

/** Watches a process's resident memory, in bytes: in total, and without mapped files. */
export class MemoryWatch implements Disposable {
  peak = 0;
  ownPeak = 0;
  private readonly timer: Timer;

  constructor(pid: number) {
    this.timer = setInterval(() => {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      const bytes = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) * 1024;
      this.peak = Math.max(this.peak, bytes("VmRSS"));
      this.ownPeak = Math.max(this.ownPeak, bytes("RssAnon"));
    }, 100);
  }

  [Symbol.dispose](): void {
    clearInterval(this.timer);
  }
}
