import { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { $ } from "bun";
import { measureHanging, measureIdle, ROUNDS } from "./delivery-latency.ts";
import { startHanging } from "./endpoint.ts";
import * as queued from "./queued.ts";
import { installBaseline, MemoryWatch, median, runPinned, startServer, waitUntil } from "./servers.ts";
import { copyFolder, tell } from "./shops.ts";
import { postAll, type SignedPost } from "./signed-posts.ts";
import { machineLine, needTwoCores, rate, Table } from "./table.ts";

const { values } = parseArgs({
  options: { large: { type: "boolean", default: false }, hanging: { type: "boolean", default: false } },
});
const BENCH = import.meta.dir;

const SHOPS = 100;
const EVENTS_PER_SHOP = 200;
/** The number of concurrent attempts of sds: 4 for each shop, the default of SDS_DELIVERY_PER_SHOP. */
const IN_FLIGHT = SHOPS * 4;
/** BullMQ is fastest with this concurrency. */
const QUEUE_CONCURRENCY = 50;
const FEW = 10_000;
const MANY = 1_000_000;
/** The measurement of the large backlog ends after this many deliveries. */
const SENT_OF_MANY = 200_000;

const CONNECTIONS = 16;
const TAKEN_EVENTS = 8_000;

const table = new Table();

/**
 * Lets sds send everything that is queued, in a copy of the folder.
 * @returns deliveries per second, from the start of sds to the last recorded delivery
 */
async function drain(template: string): Promise<number> {
  const folder = copyFolder(template, `${template}-used`);
  const start = performance.now();
  await using _server = await queued.startSds(folder);
  using db = new Database(queued.databaseOf(folder), { readonly: true });
  const due = db.prepare("SELECT 1 FROM deliveries WHERE claimable_at IS NOT NULL LIMIT 1");
  await waitUntil(() => due.get() === null, 10);
  return delivered(db) / ((performance.now() - start) / 1_000);
}

/**
 * Lets sds send the first `count` deliveries of a folder.
 * @returns deliveries per second, and the memory that sds took
 */
async function drainSome(folder: string, count: number): Promise<{ perSecond: number; memory: number }> {
  const start = performance.now();
  await using server = await queued.startSds(folder);
  using memory = new MemoryWatch(server.pid);
  using db = new Database(queued.databaseOf(folder), { readonly: true });
  await waitUntil(() => delivered(db) >= count, 250);
  return { perSecond: delivered(db) / ((performance.now() - start) / 1_000), memory: memory.ownPeak };
}

function delivered(db: Database): number {
  return (
    db.query<{ count: number }, []>("SELECT count(*) AS count FROM deliveries WHERE status = 'delivered'").get()
      ?.count ?? 0
  );
}

/** Runs posts.ts, which only signs and posts. @returns deliveries per second, from its start to its end */
async function runLoop(file: string, count: number, endpoint: string): Promise<number> {
  const env = { BUN_CONFIG_MAX_HTTP_REQUESTS: String(IN_FLIGHT + 32) };
  return count / (await runPinned(["bun", join(BENCH, "posts.ts"), file, endpoint, String(IN_FLIGHT)], env)).seconds;
}

/**
 * Runs BullMQ, with a Redis that syncs each completed job to the disk.
 * @returns deliveries per second, from the worker's start to its end
 */
async function runBullMq(
  file: string,
  count: number,
  endpoint: string,
  connections: "keep" | "close",
): Promise<number> {
  const folder = join(queued.FOLDER, "redis");
  await $`rm -rf ${folder} && mkdir -p ${folder}`;
  const socket = join(folder, "redis.sock");
  const place = ["--port", "0", "--dir", folder, "--unixsocket", "redis.sock"];
  const durable = "--appendonly yes --appendfsync always --auto-aof-rewrite-percentage 0".split(" ");
  const pinned = ["taskset", "-c", "0", "setpriv", "--pdeathsig", "SIGKILL"];
  const redis = Bun.spawn([...pinned, "redis-server", ...place, ...durable, "--save", ""], {
    stdin: "ignore",
    stdout: "ignore",
  });
  try {
    const queue = ["node", join(BENCH, "baseline/queue.js")];
    await runPinned([...queue, "add", socket, file]);
    const worked = await runPinned([...queue, "work", socket, endpoint, String(QUEUE_CONCURRENCY), connections]);
    return count / worked.seconds;
  } finally {
    redis.kill();
    await redis.exited;
  }
}

async function measureThroughput(endpoint: string): Promise<void> {
  const count = SHOPS * EVENTS_PER_SHOP;
  const folder = await queued.makeFolder("backlog", [
    { name: "shop", count: SHOPS, endpoint, events: EVENTS_PER_SHOP },
  ]);
  const file = await queued.sentFile(folder);
  const [ours, loop, closing, keeping]: [number[], number[], number[], number[]] = [[], [], [], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    ours.push(await drain(folder));
    loop.push(await runLoop(file, count, endpoint));
    closing.push(await runBullMq(file, count, endpoint, "close"));
    keeping.push(await runBullMq(file, count, endpoint, "keep"));
  }
  const against = (what: string, others: number[], name: string, target: number) => {
    const [sds, other] = [median(ours), median(others)];
    table.addRatio(what, `${rate(sds)}, ${name} ${rate(other)}`, sds / other, target);
  };
  against("Queued to recorded as delivered, against a loop that signs and posts", loop, "loop", 0.35);
  against("The same against BullMQ on Redis with appendfsync always", closing, "BullMQ", 2);
  against(
    "The same against BullMQ with a worker that keeps its connections, which sds must not do",
    keeping,
    "BullMQ",
    2,
  );
}

async function measureLarge(endpoint: string): Promise<void> {
  const name = "Backlog of 1,000,000 against 10,000";
  if (!values.large) {
    table.addRemark(name, "not run (`--large`)", "at least 0.8");
    return;
  }
  tell("Queueing 1,000,000 deliveries ...");
  const group = { name: "shop", count: SHOPS, endpoint };
  const many = await queued.makeFolder("many", [{ ...group, events: MANY / SHOPS }]);
  const few = await queued.makeFolder("few", [{ ...group, events: FEW / SHOPS }]);
  const speeds: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) speeds.push(await drain(few));
  const { perSecond, memory } = await drainSome(many, SENT_OF_MANY);
  const speed = median(speeds);
  table.addRatio(
    `${name} (the first ${SENT_OF_MANY.toLocaleString("en")})`,
    `${rate(perSecond)}, 10,000 ${rate(speed)}`,
    perSecond / speed,
    0.8,
  );
  table.addBound("Memory while it sends the large backlog, without mapped files", memory / 1e6, 250, "MB");
}

/**
 * Measures the intake first with an endpoint that hangs, so that sending takes almost no processor time. Then measures
 * the intake with an endpoint that answers.
 */
async function measureIntake(endpoint: string): Promise<void> {
  using hanging = startHanging();
  const quiet = await queued.makeFolder("intake", [{ name: "shop", count: 1, endpoint: hanging.url, events: 0 }]);
  const sending = await queued.makeFolder("intake-sending", [{ name: "shop", count: 1, endpoint, events: 0 }]);
  const quietEvents = await queued.postsTo(quiet, "shop0.myshopify.com", TAKEN_EVENTS);
  const sendingEvents = await queued.postsTo(sending, "shop0.myshopify.com", TAKEN_EVENTS);
  const speeds: Record<"intake" | "bare" | "sending", number[]> = { intake: [], bare: [], sending: [] };
  const taken = async (template: string, events: readonly SignedPost[]) => {
    const folder = copyFolder(template, `${template}-used`);
    await using server = await queued.startSds(folder);
    const { count, seconds } = await postAll([server], events, CONNECTIONS);
    return { folder, perSecond: count / seconds };
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    const { folder, perSecond } = await taken(quiet, quietEvents);
    speeds.intake.push(perSecond);
    await $`rm -rf ${queued.FOLDER}/commits && cp -r ${quiet} ${queued.FOLDER}/commits`;
    const databases = [queued.databaseOf(folder), join(queued.FOLDER, "commits/sds.db")];
    const { printed } = await runPinned(["bun", join(BENCH, "commits.ts"), ...databases, String(CONNECTIONS)]);
    speeds.bare.push(TAKEN_EVENTS / Number(printed));
    speeds.sending.push((await taken(sending, sendingEvents)).perSecond);
  }
  const [intake, bare] = [median(speeds.intake), median(speeds.bare)];
  const measured = `${rate(intake)}, bare ${rate(bare)}`;
  table.addRatio(
    `Intake of single events, ${CONNECTIONS} connections, against bare commits of ${CONNECTIONS} events' rows`,
    measured,
    intake / bare,
    0.5,
  );
  table.addRemark("Intake while the same core sends what it queues", rate(median(speeds.sending)));
}

needTwoCores();
await $`bun scripts/build.ts --outfile ${queued.SDS}`.quiet();
if (!values.hanging) await installBaseline();
// Environment of every sds that this bench starts.
process.env["SDS_EGRESS_ALLOW"] = "127.0.0.0/8";
tell("Measuring ...");
if (values.hanging) {
  await measureHanging(table);
  process.stdout.write(`${table}\n`);
  process.exit(0);
}
await using sink = await startServer(["bun", join(BENCH, "endpoint.ts")]);
const endpoint = `${sink.url}/`;
await measureIdle(table);
await measureIntake(endpoint);
await measureHanging(table);
await measureThroughput(endpoint);
await measureLarge(endpoint);

const redis = /v=(\S+)/.exec(await $`redis-server --version`.text())?.[1];
const node = (await $`node --version`.text()).trim();
process.stdout.write(
  `${SHOPS} shops with ${EVENTS_PER_SHOP} events each, one endpoint that answers at once, medians of ${ROUNDS} rounds; ${machineLine(`Node ${node}`, `Redis ${redis}`)}\n\n${table}\n`,
);
rmSync(queued.FOLDER, { recursive: true });
