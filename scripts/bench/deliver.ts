import { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { $, serve } from "bun";
import { importSecret, signBody } from "../../src/client/signature.ts";
import * as queued from "./queued.ts";
import { subscriptionRecords } from "./records.ts";
import { MemoryWatch, median, type Server, serveCommand, startPinnedServer, startServer } from "./servers.ts";
import { tell } from "./shops.ts";
import { rate, rounded, Table } from "./table.ts";

const { values } = parseArgs({
  options: { large: { type: "boolean", default: false }, hanging: { type: "boolean", default: false } },
});
const BENCH = import.meta.dir;
const BASELINE = join(BENCH, "deliver-baseline");
const SDS = join(queued.FOLDER, "sds");
const ROUNDS = 3;

const SHOPS = 100;
const EVENTS_PER_SHOP = 200;
/** As many attempts at once as sds makes for these shops: 4 for each, the default of SDS_DELIVERY_PER_SHOP. */
const IN_FLIGHT = SHOPS * 4;
/** BullMQ is slower with fewer and with more. */
const QUEUE_CONCURRENCY = 50;
const FEW = 10_000;
const MANY = 1_000_000;
/** The measurement of the large backlog ends after this many. */
const SENT_OF_MANY = 200_000;

const CONNECTIONS = 16;
const TAKEN_EVENTS = 8_000;
const IDLE_EVENTS = 500;
const HANGING_SHOPS = 300;
const FLAPPING_SHOPS = 100;
const FLAP_MS = 4_000;
const FLAP_ANSWER_MS = 200;
/** Longer than three timeouts. */
const HANGING_MS = 31_000;
const PAUSE_MS = 30;

/** A run that takes longer is broken. */
const RUN_TIMEOUT_MS = 300_000;

const table = new Table();

/** Runs a program on the first core until it ends. @returns the seconds, and what it printed */
async function run(command: string[], env: Record<string, string> = {}): Promise<{ seconds: number; printed: string }> {
  const start = performance.now();
  const program = Bun.spawn(["taskset", "-c", "0", "setpriv", "--pdeathsig", "SIGKILL", ...command], {
    env: { ...process.env, ...env },
    stdin: "ignore",
    stderr: "inherit",
    timeout: RUN_TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
  const printed = await new Response(program.stdout).text();
  if ((await program.exited) !== 0)
    throw new Error(`${command.join(" ")} ended with ${program.exitCode ?? program.signalCode}`);
  return { seconds: (performance.now() - start) / 1_000, printed };
}

function startSds(folder: string): Promise<Server> {
  return startPinnedServer(serveCommand(SDS, folder));
}

async function waitUntil(met: () => boolean, intervalMs: number): Promise<void> {
  const deadline = performance.now() + RUN_TIMEOUT_MS;
  while (!met()) {
    if (performance.now() > deadline) throw new Error("sds took too long");
    await Bun.sleep(intervalMs);
  }
}

/**
 * Lets sds send everything that is queued, in a copy of the folder.
 * @returns deliveries per second, from its start to the last record
 */
async function drain(template: string): Promise<number> {
  const folder = queued.copyOf(template);
  const start = performance.now();
  await using _server = await startSds(folder);
  using db = new Database(queued.databaseOf(folder), { readonly: true });
  const due = db.prepare("SELECT 1 FROM deliveries WHERE claimable_at IS NOT NULL LIMIT 1");
  await waitUntil(() => due.get() === null, 10);
  return delivered(db) / ((performance.now() - start) / 1_000);
}

/** Lets sds send the first deliveries of a folder. @returns deliveries per second, and the memory that sds took */
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

/** Runs the loop that only signs and posts. @returns deliveries per second, from its start to its end */
async function post(file: string, count: number, endpoint: string): Promise<number> {
  const env = { BUN_CONFIG_MAX_HTTP_REQUESTS: String(IN_FLIGHT + 32) };
  return count / (await run(["bun", join(BENCH, "posts.ts"), file, endpoint, String(IN_FLIGHT)], env)).seconds;
}

/**
 * Runs BullMQ, with a Redis that syncs each completed job to the disk.
 * @returns deliveries per second, from the worker's start to its end
 */
async function work(file: string, count: number, endpoint: string, connections: "keep" | "close"): Promise<number> {
  const folder = join(queued.FOLDER, "redis");
  await $`rm -rf ${folder} && mkdir -p ${folder}`;
  const socket = join(folder, "redis.sock");
  const durable = [
    "--appendonly",
    "yes",
    "--appendfsync",
    "always",
    "--save",
    "",
    "--auto-aof-rewrite-percentage",
    "0",
  ];
  const redis = Bun.spawn(
    [
      "taskset",
      "-c",
      "0",
      "setpriv",
      "--pdeathsig",
      "SIGKILL",
      "redis-server",
      "--port",
      "0",
      "--dir",
      folder,
      "--unixsocket",
      "redis.sock",
      ...durable,
    ],
    { stdin: "ignore", stdout: "ignore" },
  );
  try {
    const queue = join(BASELINE, "queue.js");
    await run(["node", queue, "add", socket, file]);
    return (
      count / (await run(["node", queue, "work", socket, endpoint, String(QUEUE_CONCURRENCY), connections])).seconds
    );
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
  const speeds: Record<"sds" | "bare" | "closing" | "keeping", number[]> = {
    sds: [],
    bare: [],
    closing: [],
    keeping: [],
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    speeds.sds.push(await drain(folder));
    speeds.bare.push(await post(file, count, endpoint));
    speeds.closing.push(await work(file, count, endpoint, "close"));
    speeds.keeping.push(await work(file, count, endpoint, "keep"));
  }
  const [sds, bare, closing, keeping] = [
    median(speeds.sds),
    median(speeds.bare),
    median(speeds.closing),
    median(speeds.keeping),
  ];
  table.addRatio(
    "Queued to recorded as delivered, against a loop that signs and posts",
    `${rate(sds)}, loop ${rate(bare)}`,
    sds / bare,
    0.35,
  );
  table.addRatio(
    "The same against BullMQ on Redis with appendfsync always",
    `${rate(sds)}, BullMQ ${rate(closing)}`,
    sds / closing,
    2,
  );
  table.addRatio(
    "The same against BullMQ with a worker that keeps its connections, which sds must not do",
    `${rate(sds)}, BullMQ ${rate(keeping)}`,
    sds / keeping,
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
  table.addBound("Memory during that, without mapped files", memory / 1e6, 250, "MB");
}

/** A signed record, as the billing system posts it. */
interface Posted {
  body: string;
  headers: Record<string, string>;
}

async function postedRecords(folder: string, domain: string, count: number): Promise<Posted[]> {
  const key = await importSecret(await queued.intakeSecretOf(folder, domain));
  return Promise.all(
    Array.from(subscriptionRecords(count, "random"), async (record) => {
      const body = JSON.stringify(record);
      return {
        body,
        headers: {
          "X-Service-Shop": domain,
          "X-Service-Signature": await signBody(key, Uint8Array.from(Buffer.from(body))),
        },
      };
    }),
  );
}

async function take({ url }: Server, { body, headers }: Posted): Promise<void> {
  const answer = await fetch(`${url}/intake`, { method: "POST", body, headers });
  await answer.arrayBuffer();
  if (answer.status !== 202) throw new Error(`/intake gave ${answer.status}`);
}

/** An endpoint in this process, so that one clock measures both when an event was sent and when it arrived. */
class Receiver implements Disposable {
  private arrival = Promise.withResolvers<number>();
  private readonly server = serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    fetch: async (request) => {
      this.arrival.resolve(performance.now());
      await request.arrayBuffer();
      return new Response();
    },
  });
  readonly url = String(this.server.url);

  /** Resolves when the next delivery arrives, to the time. */
  next(): Promise<number> {
    this.arrival = Promise.withResolvers<number>();
    return this.arrival.promise;
  }

  [Symbol.dispose](): void {
    this.server.stop(true);
  }
}

interface Latency {
  /** To the arrival, from the 202, which comes a little after the commit. */
  fromAnswerMs: number;
  /** To the arrival, from the time the event was sent. */
  fromRequestMs: number;
}

/** Sends one event at a time, with a pause after each in which its delivery is recorded. */
async function latencies(server: Server, receiver: Receiver, records: Posted[]): Promise<Latency[]> {
  const measured: Latency[] = [];
  for (const record of records) {
    const arrival = receiver.next();
    const sent = performance.now();
    await take(server, record);
    const answered = performance.now();
    const arrived = await arrival;
    measured.push({ fromAnswerMs: arrived - answered, fromRequestMs: arrived - sent });
    await Bun.sleep(PAUSE_MS);
  }
  return measured;
}

function percentile(numbers: number[], share: number): number {
  return numbers.toSorted((a, b) => a - b)[Math.ceil(numbers.length * share) - 1] ?? Number.NaN;
}

async function measureIdle(): Promise<void> {
  using receiver = new Receiver();
  const folder = await queued.makeFolder("idle", [{ name: "shop", count: 1, endpoint: receiver.url, events: 0 }]);
  const records = await postedRecords(folder, "shop0.myshopify.com", IDLE_EVENTS);
  await using server = await startSds(folder);
  const measured = await latencies(server, receiver, records);
  const [fromAnswer, fromRequest] = [
    measured.map((each) => each.fromAnswerMs),
    measured.map((each) => each.fromRequestMs),
  ];
  const beside = (share: number) => ` (${rounded(percentile(fromRequest, share))} ms from the request)`;
  table.addBound("Commit (the 202) to receipt, idle queue, median", percentile(fromAnswer, 0.5), 10, "ms", beside(0.5));
  table.addBound("The same, 99th percentile", percentile(fromAnswer, 0.99), 50, "ms", beside(0.99));
}

/** An endpoint that accepts connections and never answers. */
function startHanging() {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  return { url: `http://127.0.0.1:${listener.port}/`, [Symbol.dispose]: () => listener.stop(true) };
}

/** @returns events per second */
async function takeAll(server: Server, records: Posted[]): Promise<number> {
  const left = records.values();
  const start = performance.now();
  const connection = async () => {
    for (const record of left) await take(server, record);
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, connection));
  return records.length / ((performance.now() - start) / 1_000);
}

/**
 * Measures the intake first with an endpoint that hangs, so that sending takes no part of the core, then with one that
 * answers.
 */
async function measureIntake(endpoint: string): Promise<void> {
  using hanging = startHanging();
  const quiet = await queued.makeFolder("intake", [{ name: "shop", count: 1, endpoint: hanging.url, events: 0 }]);
  const sending = await queued.makeFolder("intake-sending", [{ name: "shop", count: 1, endpoint, events: 0 }]);
  const quietRecords = await postedRecords(quiet, "shop0.myshopify.com", TAKEN_EVENTS);
  const sendingRecords = await postedRecords(sending, "shop0.myshopify.com", TAKEN_EVENTS);
  const speeds: Record<"intake" | "bare" | "sending", number[]> = { intake: [], bare: [], sending: [] };
  const taken = async (template: string, records: Posted[]) => {
    const folder = queued.copyOf(template);
    await using server = await startSds(folder);
    return { folder, perSecond: await takeAll(server, records) };
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    const { folder, perSecond } = await taken(quiet, quietRecords);
    speeds.intake.push(perSecond);
    await $`rm -rf ${queued.FOLDER}/commits && cp -r ${quiet} ${queued.FOLDER}/commits`;
    const command = [
      "bun",
      join(BENCH, "commits.ts"),
      queued.databaseOf(folder),
      join(queued.FOLDER, "commits/sds.db"),
      String(CONNECTIONS),
    ];
    speeds.bare.push(TAKEN_EVENTS / Number((await run(command)).printed));
    speeds.sending.push((await taken(sending, sendingRecords)).perSecond);
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

/** An endpoint that answers for some seconds, as quickly as one far away, then hangs for as long, and so on. */
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

/** Sends events for three timeouts after a cold start. @returns from each request to the receipt, in milliseconds */
async function healthyLatencies(template: string, receiver: Receiver, records: Posted[]): Promise<number[]> {
  await using server = await startSds(queued.copyOf(template));
  const end = performance.now() + HANGING_MS;
  const measured: number[] = [];
  while (performance.now() < end) {
    const [record] = records.splice(0, 1);
    if (record === undefined) throw new Error("there are too few records");
    measured.push(...(await latencies(server, receiver, [record])).map(({ fromRequestMs }) => fromRequestMs));
  }
  return measured;
}

/** The healthy shop comes last, so that all others are due before it. */
async function measureHanging(): Promise<void> {
  using receiver = new Receiver();
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
    const records = (folder: string) => postedRecords(folder, "healthy0.myshopify.com", HANGING_MS / PAUSE_MS);
    p99.alone.push(percentile(await healthyLatencies(alone, receiver, await records(alone)), 0.99));
    const beside = await healthyLatencies(among, receiver, await records(among));
    p99.among.push(percentile(beside, 0.99));
    longest.push(Math.max(...beside));
  }
  const [without, beside] = [median(p99.alone), median(p99.among)];
  const name = `Event sent to receipt beside ${HANGING_SHOPS} shops that hang and ${FLAPPING_SHOPS} that flap, from a cold start`;
  const values = `${rounded(beside)} ms, without ${rounded(without)} ms`;
  table.addRatioBelow(`${name}, 99th percentile`, values, beside / without, 1.5);
  table.addBound("The same, maximum", median(longest), 500, "ms");
}

async function installBaseline(): Promise<void> {
  const installed = Bun.file(join(BASELINE, "node_modules/.package-lock.json"));
  if (
    (await installed.exists()) &&
    installed.lastModified >= Bun.file(join(BASELINE, "package-lock.json")).lastModified
  )
    return;
  tell("Installing BullMQ, once ...");
  // Not `npm ci`: it refuses a lock file without the optional packages of other systems, which npm itself leaves out.
  await $`npm install --omit=optional --no-audit --no-fund --loglevel=error`.cwd(BASELINE).quiet();
}

if (cpus().length < 2) throw new Error("this needs two cores: one to send, one to receive");
await $`bun scripts/build.ts --outfile ${SDS}`.quiet();
if (!values.hanging) await installBaseline();
// Every sds that is started inherits this.
process.env["SDS_EGRESS_ALLOW"] = "127.0.0.0/8";
tell("Measuring ...");
if (values.hanging) {
  await measureHanging();
  process.stdout.write(`${table}\n`);
  process.exit(0);
}
await using sink = await startServer(["bun", join(BENCH, "sink.ts")]);
const endpoint = `${sink.url}/`;
await measureIdle();
await measureIntake(endpoint);
await measureHanging();
await measureThroughput(endpoint);
await measureLarge(endpoint);

const redis = /v=(\S+)/.exec(await $`redis-server --version`.text())?.[1];
const node = (await $`node --version`.text()).trim();
const machine = `${cpus()[0]?.model.trim()}, ${cpus().length} cores, Bun ${Bun.version}, Node ${node}, Redis ${redis}, ${new Date().toISOString().slice(0, 10)}`;
process.stdout.write(
  `${SHOPS} shops with ${EVENTS_PER_SHOP} events each, one endpoint that answers at once, medians of ${ROUNDS} rounds; ${machine}\n\n${table}\n`,
);
rmSync(queued.FOLDER, { recursive: true });
