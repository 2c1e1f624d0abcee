import { Database } from "bun:sqlite";
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { $ } from "bun";
import { type PlatformPost, platformPosts, postAll, requestOf } from "./platform-posts.ts";
import { processorSeconds } from "./processor-time.ts";
import { median, percentile, runPinned, type Server, serveCommand, startPinnedServer, waitUntil } from "./servers.ts";
import { tell } from "./shops.ts";
import { DOMAIN, type Points, StandIn } from "./stand-in.ts";
import { machineLine, needTwoCores, rate, rounded, Table } from "./table.ts";

const { values } = parseArgs({
  options: { large: { type: "boolean", default: false }, load: { type: "boolean", default: false } },
});
/** Git ignores this folder. */
const FOLDER = "dist/bench/inbound";
const SDS = join(FOLDER, "sds");
const SECRET_FILE = join(FOLDER, "secret");
const SECRET = "the-app-client-secret";

const ROUNDS = 3;
const CONNECTIONS = 32;
/** Each contract gives two webhooks: one about the contract and one about its customer. */
const CONTRACTS = 11_000;
/** Number of webhooks that are sent before the measurement begins, to warm up the program. */
const WARM_UP = 2_000;

/** More points than a run can spend. */
const UNTHROTTLED: Points = { maximumAvailable: 1e9, restoreRate: 1e9 };
/** The points that the most expensive plan gives. */
const LARGEST_PLAN: Points = { maximumAvailable: 40_000, restoreRate: 2_000 };
/** Enough points to connect, then almost none. So work that reads from the platform waits. */
const STANDSTILL: Points = { maximumAvailable: 1_000, restoreRate: 1 };
/** Like the plan "Plus", but with few points at the start. So the load has to wait for points. */
const SYNC_POINTS: Points = { maximumAvailable: 2_000, restoreRate: 1_000 };
const SYNCED = values.large ? 100_000 : 10_000;

/** Number of operations of `sds sync --since`: the installation, protected data, and four lists. */
const OPERATION_COUNT = 6;

const table = new Table();

function sds(folder: string, ...args: string[]): Promise<{ seconds: number }> {
  return runPinned([SDS, "--data", folder, ...args], { SDS_LOG: "error" });
}

/** Starts a stand-in with this many contracts. From now on, sds uses this stand-in. */
async function startStandIn(points: Points, contracts: number): Promise<StandIn> {
  const standIn = await StandIn.start(SECRET_FILE, points, { contracts, renewals: 1 });
  process.env["SDS_PLATFORM_URL"] = standIn.url;
  return standIn;
}

function newFolder(name: string, template?: string): string {
  const folder = join(FOLDER, name);
  rmSync(folder, { recursive: true, force: true });
  if (template !== undefined) cpSync(template, folder, { recursive: true });
  return folder;
}

function connectShop(folder: string): Promise<unknown> {
  return sds(folder, "shop", "connect", DOMAIN, "--client-credentials");
}

/** Starts `serve` on a copy of the template, with a stand-in of its own, and warms it up. */
async function withServer<T>(
  template: string,
  points: Points,
  posts: PlatformPost[],
  run: (server: Server, standIn: StandIn, folder: string) => Promise<T>,
) {
  await using standIn = await startStandIn(points, CONTRACTS);
  const folder = newFolder("serving", template);
  await connectShop(folder);
  await using server = await startPinnedServer(serveCommand(SDS, folder));
  await postAll(server.url, requestsOf(posts.slice(0, WARM_UP)), CONNECTIONS);
  return await run(server, standIn, folder);
}

function requestsOf(posts: PlatformPost[]): Uint8Array[] {
  return posts.map((post) => requestOf(post, SECRET));
}

function count(folder: string): number {
  using db = new Database(join(folder, "sds.db"), { readonly: true });
  return db.query<{ count: number }, []>("SELECT count(*) AS count FROM inbox").get()?.count ?? 0;
}

/** Inserts the webhooks into a plain table with bodies.ts. @returns webhooks per second */
async function commitBodies(posts: PlatformPost[]): Promise<number> {
  const folder = newFolder("bare");
  mkdirSync(folder);
  const file = join(folder, "posts.ndjson");
  await Bun.write(file, `${posts.map((post) => JSON.stringify(post)).join("\n")}\n`);
  const command = ["bun", join(import.meta.dir, "bodies.ts"), file, join(folder, "bodies.db"), String(CONNECTIONS)];
  return posts.length / Number((await runPinned(command)).printed);
}

async function measureWebhooks(template: string, posts: PlatformPost[]): Promise<void> {
  const measured = posts.slice(WARM_UP);
  const requests = requestsOf(measured);
  const speeds: Record<"taken" | "alone" | "bare" | "processed", number[]> = {
    taken: [],
    alone: [],
    bare: [],
    processed: [],
  };
  const slowest: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await withServer(template, LARGEST_PLAN, posts, async (server, _standIn, folder) => {
      const before = count(folder);
      const { seconds, latencies } = await postAll(server.url, requests, CONNECTIONS);
      speeds.taken.push(measured.length / seconds);
      speeds.processed.push((before + measured.length - count(folder)) / seconds);
      slowest.push(percentile(latencies, 0.99));
    });
    await withServer(template, STANDSTILL, posts, async (server) => {
      speeds.alone.push(measured.length / (await postAll(server.url, requests, CONNECTIONS)).seconds);
    });
    speeds.bare.push(await commitBodies(measured));
  }
  const [taken, alone, bare] = [median(speeds.taken), median(speeds.alone), median(speeds.bare)];
  const meanwhile = `${rate(median(speeds.processed))} processed meanwhile, contracts at ${LARGEST_PLAN.restoreRate.toLocaleString("en")} points/s`;
  const name = `Webhooks acknowledged, ${CONNECTIONS} connections, against bare commits of ${CONNECTIONS} of the same bytes`;
  table.addRatio(name, `${rate(taken)}, bare ${rate(bare)} (${meanwhile})`, taken / bare, 0.5);
  table.addRemark(
    "The same while the platform gives no points, so that only webhooks that need no query are processed",
    `${rate(alone)}, ratio ${(alone / bare).toFixed(2)}`,
  );
  table.addBound("From request to acknowledgement meanwhile, 99th percentile", median(slowest), 100, "ms");
}

/**
 * Measures how long sds takes to empty its inbox. Meanwhile no webhooks arrive, and the stand-in answers as fast as it
 * can.
 */
async function measureDrain(template: string, posts: PlatformPost[]): Promise<void> {
  await withServer(template, UNTHROTTLED, posts, async (server, standIn, folder) => {
    await postAll(server.url, requestsOf(posts.slice(WARM_UP)), CONNECTIONS);
    const waiting = count(folder);
    const used = () => [server, standIn].map(({ pid }) => processorSeconds(pid));
    const [start, before] = [performance.now(), used()];
    await waitUntil(() => count(folder) === 0, 50);
    const seconds = (performance.now() - start) / 1_000;
    const [own, others] = used().map((now, index) => (now - (before[index] ?? 0)) / seconds);
    const busy = `sds ${percent(own)} of its core, stand-in ${percent(others)}`;
    table.addRemark(
      `${waiting.toLocaleString("en")} webhooks that wait, until the inbox is empty, no limit of points`,
      `${rounded(seconds)} s, ${rate(waiting / seconds)} (${busy})`,
    );
  });
}

function percent(share: number | undefined): string {
  return `${Math.round((share ?? Number.NaN) * 100)} %`;
}

async function measureSync(): Promise<void> {
  const { maximumAvailable, restoreRate } = SYNC_POINTS;
  const folder = newFolder("sync");
  await using standIn = await startStandIn(SYNC_POINTS, SYNCED);
  await connectShop(folder);
  const { seconds } = await sds(folder, "sync", DOMAIN);
  const { points, throttled } = await standIn.spent();
  const allowed = (points - maximumAvailable) / restoreRate;
  const measured = `${rounded(seconds)} s, budget ${rounded(allowed)} s (${points.toLocaleString("en")} points at ${restoreRate.toLocaleString("en")}/s, refused ${throttled})`;
  table.addRatioBelow(
    `Load of ${SYNCED.toLocaleString("en")} contracts against what the points allow`,
    measured,
    seconds / allowed,
    1.1,
  );
}

/** Loads a shop into the folder, with enough points. @returns webhooks about its contracts and customers */
async function measureUnthrottled(folder: string): Promise<PlatformPost[]> {
  await using standIn = await startStandIn(UNTHROTTLED, CONTRACTS);
  await connectShop(folder);
  const before = processorSeconds(standIn.pid);
  const { seconds } = await sds(folder, "sync", DOMAIN);
  const { points } = await standIn.spent();
  const busy = `stand-in ${percent((processorSeconds(standIn.pid) - before) / seconds)} of its core`;
  table.addRemark(
    `Load of ${CONTRACTS.toLocaleString("en")} contracts, no limit of points`,
    `${rate(CONTRACTS / seconds)}, ${rate(points / seconds)} points (${busy})`,
  );
  await measureNothingNew(folder, standIn);
  return platformPosts(await standIn.ids("contract"), await standIn.ids("customer"), Date.now());
}

async function measureNothingNew(folder: string, standIn: StandIn): Promise<void> {
  const before = await standIn.spent();
  await sds(folder, "sync", DOMAIN, "--since", new Date().toISOString());
  const after = await standIn.spent();
  const asked = Object.entries(after.operations).flatMap(([operation, n]) => {
    const times = n - (before.operations[operation] ?? 0);
    return times === 0 ? [] : [{ operation, times }];
  });
  const measured = `${asked.map(({ operation, times }) => `${operation} ${times}`).join(", ")} (${after.points - before.points} points)`;
  table.addCheck(
    "Requests of a reconciliation with nothing changed",
    measured,
    "one of each kind",
    asked.length === OPERATION_COUNT && asked.every(({ times }) => times === 1),
  );
}

needTwoCores();
mkdirSync(FOLDER, { recursive: true });
await $`bun scripts/build.ts --outfile ${SDS}`.quiet();
await Bun.write(SECRET_FILE, SECRET);
// Environment of every sds that this bench starts.
Object.assign(process.env, { SDS_PLATFORM_CLIENT_ID: "client", SDS_PLATFORM_SECRET_FILE: SECRET_FILE });
const template = newFolder("synced");
tell("Loading a shop ...");
const posts = await measureUnthrottled(template);
if (!values.load) {
  tell("Posting webhooks ...");
  await measureWebhooks(template, posts);
  await measureDrain(template, posts);
}
tell("Loading a shop at the pace that its points allow ...");
await measureSync();

process.stdout.write(
  `One shop on the stand-in of the platform, one core for sds and one for everything else, medians of ${ROUNDS} rounds; ${machineLine()}\n\n${table}\n`,
);
rmSync(FOLDER, { recursive: true });
