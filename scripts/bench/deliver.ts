import { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { $, serve } from "bun";
import { Endpoint, startHanging } from "./endpoint.ts";
import * as queued from "./queued.ts";
import {
  installBaseline,
  MemoryWatch,
  median,
  percentile,
  runPinned,
  type Server,
  serveCommand,
  startPinnedServer,
  startServer,
  waitUntil,
} from "./servers.ts";
import { copyFolder, tell } from "./shops.ts";
import { post, postAll, type SignedPost, signedPosts } from "./signed-posts.ts";
import { machineLine, needTwoCores, rate, rounded, Table } from "./table.ts";

const { values } = parseArgs({
  options: { large: { type: "boolean", default: false }, hanging: { type: "boolean", default: false } },
});
const BENCH = import.meta.dir;
const SDS = join(queued.FOLDER, "sds");
const ROUNDS = 3;

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
const IDLE_EVENTS = 500;
const HANGING_SHOPS = 300;
const FLAPPING_SHOPS = 100;
const FLAP_MS = 4_000;
const FLAP_ANSWER_MS = 200;
/** How long the bench sends events. This is longer than three timeouts of an attempt. */
const HANGING_MS = 31_000;
const PAUSE_MS = 30;

const table = new Table();

function startSds(folder: string): Promise<Server> {
  return startPinnedServer(serveCommand(SDS, folder));
}

/**
 * Lets sds send everything that is queued, in a copy of the folder.
 * @returns deliveries per second, from the start of sds to the last recorded delivery
 */
async function drain(template: string): Promise<number> {
  const folder = copyFolder(template, `${template}-used`);
  const start = performance.now();
  await using _server = await startSds(folder);
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
  await using server = await startSds(folder);
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

async function postsTo(folder: string, domain: string, count: number): Promise<SignedPost[]> {
  return signedPosts(domain, await queued.intakeSecretOf(folder, domain), count);
}

interface Latency {
  /**
   * Time from the answer to the arrival at the endpoint. sds answers shortly after its commit, so this is about the
   * time since the commit.
   */
  fromAnswerMs: number;
  /** Time from the request to the arrival at the endpoint. */
  fromRequestMs: number;
}

/** Sends one event at a time. In the pause after each event, sds records the delivery. */
async function latencies(server: Server, receiver: Endpoint, events: readonly SignedPost[]): Promise<Latency[]> {
  const measured: Latency[] = [];
  for (const event of events) {
    const arrival = receiver.next();
    const sent = performance.now();
    await post(server, event);
    const answered = performance.now();
    const arrived = await arrival;
    measured.push({ fromAnswerMs: arrived - answered, fromRequestMs: arrived - sent });
    await Bun.sleep(PAUSE_MS);
  }
  return measured;
}

async function measureIdle(): Promise<void> {
  using receiver = new Endpoint();
  const folder = await queued.makeFolder("idle", [{ name: "shop", count: 1, endpoint: receiver.url, events: 0 }]);
  const events = await postsTo(folder, "shop0.myshopify.com", IDLE_EVENTS);
  await using server = await startSds(folder);
  const measured = await latencies(server, receiver, events);
  const [fromAnswer, fromRequest] = [
    measured.map((each) => each.fromAnswerMs),
    measured.map((each) => each.fromRequestMs),
  ];
  const beside = (share: number) => ` (${rounded(percentile(fromRequest, share))} ms from the request)`;
  table.addBound("Commit (the 202) to receipt, idle queue, median", percentile(fromAnswer, 0.5), 10, "ms", beside(0.5));
  table.addBound("The same, 99th percentile", percentile(fromAnswer, 0.99), 50, "ms", beside(0.99));
}

/**
 * Measures the intake first with an endpoint that hangs, so that sending takes almost no processor time. Then measures
 * the intake with an endpoint that answers.
 */
async function measureIntake(endpoint: string): Promise<void> {
  using hanging = startHanging();
  const quiet = await queued.makeFolder("intake", [{ name: "shop", count: 1, endpoint: hanging.url, events: 0 }]);
  const sending = await queued.makeFolder("intake-sending", [{ name: "shop", count: 1, endpoint, events: 0 }]);
  const quietEvents = await postsTo(quiet, "shop0.myshopify.com", TAKEN_EVENTS);
  const sendingEvents = await postsTo(sending, "shop0.myshopify.com", TAKEN_EVENTS);
  const speeds: Record<"intake" | "bare" | "sending", number[]> = { intake: [], bare: [], sending: [] };
  const taken = async (template: string, events: readonly SignedPost[]) => {
    const folder = copyFolder(template, `${template}-used`);
    await using server = await startSds(folder);
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

/**
 * Starts an endpoint that answers for FLAP_MS, hangs for FLAP_MS, and so on. Each answer takes FLAP_ANSWER_MS, as if
 * the endpoint were far away.
 */
function startFlapping() {
  const answers = () => Math.floor(performance.now() / FLAP_MS) % 2 === 0;
  const server = serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    idleTimeout: 60,
    fetch: async () => {
      await (answers() ? Bun.sleep(FLAP_ANSWER_MS) : new Promise(() => undefined));
      return new Response();
    },
  });
  return { url: String(server.url), [Symbol.dispose]: () => void server.stop(true) };
}

/** Starts sds and sends events for HANGING_MS. @returns milliseconds from a request to the arrival of its delivery */
async function healthyLatencies(template: string, receiver: Endpoint, events: SignedPost[]): Promise<number[]> {
  await using server = await startSds(copyFolder(template, `${template}-used`));
  const end = performance.now() + HANGING_MS;
  const measured: number[] = [];
  while (performance.now() < end) {
    const [event] = events.splice(0, 1);
    if (event === undefined) throw new Error("there are too few events");
    measured.push(...(await latencies(server, receiver, [event])).map(({ fromRequestMs }) => fromRequestMs));
  }
  return measured;
}

/**
 * Measures the latency of a healthy shop, alone and among shops whose endpoints hang or flap. The healthy shop is added
 * last, so that the other shops' deliveries are due before its own.
 */
async function measureHanging(): Promise<void> {
  using receiver = new Endpoint();
  using hanging = startHanging();
  using flapping = startFlapping();
  const healthy = { name: "healthy", count: 1, endpoint: receiver.url, events: 0 };
  const alone = await queued.makeFolder("alone", [healthy]);
  const among = await queued.makeFolder("among", [
    { name: "hanging", count: HANGING_SHOPS, endpoint: hanging.url, events: 50 },
    { name: "flapping", count: FLAPPING_SHOPS, endpoint: flapping.url, events: 200 },
    healthy,
  ]);
  const p99: Record<"alone" | "among", number[]> = { alone: [], among: [] };
  const longest: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const events = (folder: string) => postsTo(folder, "healthy0.myshopify.com", HANGING_MS / PAUSE_MS);
    p99.alone.push(percentile(await healthyLatencies(alone, receiver, await events(alone)), 0.99));
    const beside = await healthyLatencies(among, receiver, await events(among));
    p99.among.push(percentile(beside, 0.99));
    longest.push(Math.max(...beside));
  }
  const [without, beside] = [median(p99.alone), median(p99.among)];
  const name = `Event sent to receipt beside ${HANGING_SHOPS} shops that hang and ${FLAPPING_SHOPS} that flap, from a cold start`;
  const values = `${rounded(beside)} ms, without ${rounded(without)} ms`;
  table.addRatioBelow(`${name}, 99th percentile`, values, beside / without, 1.5);
  table.addBound("The same, maximum", median(longest), 500, "ms");
}

needTwoCores();
await $`bun scripts/build.ts --outfile ${SDS}`.quiet();
if (!values.hanging) await installBaseline();
// Environment of every sds that this bench starts.
process.env["SDS_EGRESS_ALLOW"] = "127.0.0.0/8";
tell("Measuring ...");
if (values.hanging) {
  await measureHanging();
  process.stdout.write(`${table}\n`);
  process.exit(0);
}
await using sink = await startServer(["bun", join(BENCH, "endpoint.ts")]);
const endpoint = `${sink.url}/`;
await measureIdle();
await measureIntake(endpoint);
await measureHanging();
await measureThroughput(endpoint);
await measureLarge(endpoint);

const redis = /v=(\S+)/.exec(await $`redis-server --version`.text())?.[1];
const node = (await $`node --version`.text()).trim();
process.stdout.write(
  `${SHOPS} shops with ${EVENTS_PER_SHOP} events each, one endpoint that answers at once, medians of ${ROUNDS} rounds; ${machineLine(`Node ${node}`, `Redis ${redis}`)}\n\n${table}\n`,
);
rmSync(queued.FOLDER, { recursive: true });
