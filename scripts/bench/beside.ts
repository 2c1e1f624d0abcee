/**
 * Measures the intake, the sender and the read API while they run at the same time. A client posts events, one after
 * the other. In each round, the client first posts alone. It then posts while eight connections read pages of 250 rows
 * as fast as they can. The result is how long the client waits.
 *
 * `bun scripts/bench/beside.ts` runs only this bench. With an argument PROGRAM, the bench measures this executable, and
 * builds nothing.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { $ } from "bun";
import { Endpoint } from "./endpoint.ts";
import { processorSeconds } from "./processor-time.ts";
import { median, percentile, rateIn, type Server, serveCommand, startPinnedServer } from "./servers.ts";
import * as shops from "./shops.ts";
import { post, type SignedPost, signedPosts } from "./signed-posts.ts";
import { rate, rounded, Table } from "./table.ts";

const BENCH = import.meta.dir;
const ROWS = 100_000;
const WALKERS = 8;
const PAGE_ROWS = 250;
const ROUNDS = 5;
const EVENTS_PER_ROUND = 100;
/**
 * Interval between two events, with and without readers, so that both measurements have the same load. If an event
 * takes longer, the next event is posted later.
 */
const PERIOD_MS = 25;
const READ_SECONDS = 2;
const DOMAIN = "bench.myshopify.com";

interface Latencies {
  acknowledged: number[];
  /**
   * Milliseconds from the acknowledgement to the arrival at the endpoint. The acknowledgement follows the commit at
   * once, so this is also the time since the commit.
   */
  received: number[];
}

interface Measured {
  alone: Latencies;
  beside: Latencies;
  pagesAlone: number;
  pagesBeside: number;
  /** Processor time of sds for one page while no client writes. */
  pageMicroseconds: number;
}

async function postEvents(server: Server, events: readonly SignedPost[], endpoint: Endpoint): Promise<Latencies> {
  const latencies: Latencies = { acknowledged: [], received: [] };
  for (const event of events) {
    const arrival = endpoint.next();
    const start = performance.now();
    await post(server, event);
    const acknowledged = performance.now();
    const received = await arrival;
    latencies.acknowledged.push(acknowledged - start);
    latencies.received.push(Math.max(0, received - acknowledged));
    await Bun.sleep(Math.max(0, start + PERIOD_MS - performance.now()));
  }
  return latencies;
}

/** Starts to read random pages of 250 rows, until the caller stops the reading, or for `seconds` at most. */
function read(server: Server, key: string, paths: string, seconds: number) {
  // Readers get a lower priority than the client that posts events. Otherwise the client would wait for the processor,
  // and that wait would be measured too.
  const pinned = ["nice", "-n", "10", "taskset", "-c", "1"];
  const options = ["-t1", `-c${WALKERS}`, `-d${seconds}s`, "--timeout", "30s", "-s", join(BENCH, "load.lua")];
  const wrk = Bun.spawn([...pinned, "wrk", ...options, "-H", `Authorization: Bearer ${key}`, server.url, "--", paths], {
    stderr: "inherit",
  });
  return {
    stop: () => wrk.kill("SIGINT"),
    pagesPerSecond: async () => rateIn(await wrk.stdout.text()),
  };
}

/** Copies a filled shop, and sets the endpoint of its webhooks. */
async function shopFor(endpoint: string): Promise<{ folder: string; key: string; secret: string; paths: string }> {
  const filled = await shops.filledShop(ROWS);
  const folder = shops.copyFolder(filled.folder, `${filled.folder}-beside`);
  const sds = [shops.SDS, "--data", folder];
  await $`${sds} webhook set --url ${endpoint} --all-topics`
    .env({ ...process.env, SDS_EGRESS_ALLOW: "127.0.0.0/8" })
    .quiet();
  const { secret } = await $`${sds} intake secret --json`.quiet().json();
  return { folder, key: filled.key, secret, paths: shops.randomPages(filled, PAGE_ROWS) };
}

/** Moves this process to some of the cores. */
function useCores(cores: string): void {
  Bun.spawnSync(["taskset", "-cp", cores, String(process.pid)]);
}

/** @param program the sds to measure */
export async function besideReaders(program: string): Promise<Measured> {
  using endpoint = new Endpoint();
  const { folder, key, secret, paths } = await shopFor(endpoint.url);
  useCores("1");
  process.env["SDS_EGRESS_ALLOW"] = "127.0.0.0/8";
  await using server = await startPinnedServer(serveCommand(program, folder));
  const events = signedPosts(DOMAIN, secret, (2 * ROUNDS + 1) * EVENTS_PER_ROUND);
  const next = () => events.splice(0, EVENTS_PER_ROUND);
  await read(server, key, paths, 1).pagesPerSecond();
  await postEvents(server, next(), endpoint);

  const alone: Latencies = { acknowledged: [], received: [] };
  const beside: Latencies = { acknowledged: [], received: [] };
  const costs: number[] = [];
  const pages: Record<"alone" | "beside", number[]> = { alone: [], beside: [] };
  const add = (to: Latencies, { acknowledged, received }: Latencies) => {
    to.acknowledged.push(...acknowledged);
    to.received.push(...received);
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    add(alone, await postEvents(server, next(), endpoint));
    const usedBefore = processorSeconds(server.pid);
    const perSecond = await read(server, key, paths, READ_SECONDS).pagesPerSecond();
    pages.alone.push(perSecond);
    costs.push(((processorSeconds(server.pid) - usedBefore) * 1e6) / (perSecond * READ_SECONDS));
    const readers = read(server, key, paths, 600);
    add(beside, await postEvents(server, next(), endpoint));
    readers.stop();
    pages.beside.push(await readers.pagesPerSecond());
  }
  useCores("0,1");
  rmSync(folder, { recursive: true });
  return {
    alone,
    beside,
    pagesAlone: median(pages.alone),
    pagesBeside: median(pages.beside),
    pageMicroseconds: median(costs),
  };
}

/** Adds the results to the table. */
export function addBeside(table: Table, { alone, beside, pagesAlone, pagesBeside, pageMicroseconds }: Measured): void {
  const goals = [
    ["Acknowledgement of an event beside 8 readers of pages of 250, median", "acknowledged", 0.5, 1.3],
    ["The same, 99th percentile", "acknowledged", 0.99, 1.5],
    ["Commit (the 202) to receipt beside them, median", "received", 0.5, 1.5],
    ["The same, 99th percentile", "received", 0.99, 1.5],
  ] as const;
  for (const [name, of, share, limit] of goals) {
    const [withThem, without] = [percentile(beside[of], share), percentile(alone[of], share)];
    table.addRatioBelow(name, `${rounded(withThem)} ms, alone ${rounded(without)} ms`, withThem / without, limit);
  }
  table.addRemark(
    "Pages of 250 a second, 8 connections, alone and beside these events",
    `${rate(pagesAlone)}, ${rate(pagesBeside)}; ${rounded(pageMicroseconds)} µs of processor time for one`,
  );
}

if (import.meta.main) {
  const [program = shops.SDS] = process.argv.slice(2);
  if (program === shops.SDS) await shops.buildProgram();
  const table = new Table();
  addBeside(table, await besideReaders(program));
  process.stdout.write(`${table}\n`);
}
