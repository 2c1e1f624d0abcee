/**
 * Measures what 100 to 10,000 shops cost, on both engines: a start, an idle second, a page, an event, `sds status`, and
 * a night of renewals. Each shop is connected and has an endpoint, a key, rows, and deliveries that are retried later.
 * `--large` also measures 100,000 shops.
 */
import { Database } from "bun:sqlite";
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { $ } from "bun";
import { createKey } from "../../src/actions/key.ts";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { createSlots } from "../../src/lib/slots.ts";
import { openStore } from "../../src/store/open-store.ts";
import type { Store } from "../../src/store/port/store.ts";
import { randomBytes } from "../../test/support/app.ts";
import { gid, order, subscription } from "../../test/support/records.ts";
import { Endpoint } from "./endpoint.ts";
import { processorSeconds } from "./processor-time.ts";
import { type Server, serveCommand, startServer } from "./servers.ts";
import { type Side, sqliteSide, startBenchServer } from "./sides.ts";
import { post, postAll, type SignedPost } from "./signed-posts.ts";
import { machineLine } from "./table.ts";

const { values } = parseArgs({ options: { large: { type: "boolean", default: false } } });
const COUNTS = [100, 1_000, 10_000, ...(values.large ? [100_000] : [])];
const AT_ONCE = 16;
const IDLE_SECONDS = 30;
const PAGES = 500;
const EVENTS = 500;
/** Renewals of a night: one for each shop, but not more than this. */
const MOST_RENEWALS = 10_000;
/**
 * How far ahead the retries are due. This is less than the longest wait of the retry schedule. For a longer wait, sds
 * would assume that the clock was ahead, and attempt the delivery at once.
 */
const RETRY_WAIT_MS = 900_000;
/** The server counts the work of a connection up to a second late. */
const STATISTICS_DELAY_MS = 1_500;
const ACTOR = { role: "operator", who: "bench", from: null } as const;

const sds = join(import.meta.dir, "../../dist/sds");
const postgres = await startBenchServer();
using endpoint = new Endpoint();
const print = (line: string) => process.stdout.write(`${line}\n`);

interface Filled {
  key: string;
  posts: (number: number) => SignedPost[];
}

/** Adds the shops, each with a contract and a paid order. @returns a key, and posts of one renewal of each shop */
async function fill(store: Store, shops: number): Promise<Filled> {
  const slots = createSlots(AT_ONCE);
  const secrets = new Map<string, string>();
  let key = "";
  const add = async (number: number) => {
    const now = Date.now();
    const domain = `shop-${number}.myshopify.com`;
    const shop = await store.shops.add({ domain, plan: "pro", currency: "USD" }, now);
    const made = await createKey({ store, random: randomBytes }, { shop, label: "Bench", actor: ACTOR }, now);
    if (number === 0) key = made.plaintext;
    await store.webhooks.set(shop.id, { url: endpoint.url, topics: TOPIC_NAMES }, now);
    await store.connections.connect(
      shop.id,
      "token",
      { accessToken: "t", refreshToken: null, expiresAt: null },
      [],
      now,
    );
    for (const kind of ["full", "changes"] as const) await store.syncs.complete(shop.id, kind, now, 0, now);
    await store.mirror.applyRecords([{ shop, records: [subscription(1), order(1, 1)] }], now, []);
    secrets.set(domain, (await store.shops.intakeSecret(domain))?.secret ?? "");
  };
  await Promise.all(Array.from({ length: shops }, (_, number) => slots.run(() => add(number))));
  const posts = (cycle: number) =>
    Array.from(secrets, ([domain, secret]) => {
      const body = JSON.stringify({ ...order(1, cycle), shopifyId: gid.order(cycle) });
      const signature = createHmac("sha256", secret).update(body).digest("hex");
      return { body, headers: { "X-Service-Shop": domain, "X-Service-Signature": `sha256=${signature}` } };
    });
  return { key, posts };
}

/** SQL that plans a retry of all deliveries, as after a failed attempt. @param at the time of the retry */
const RETRIES = (at: number) =>
  `UPDATE deliveries SET status = 'retrying', attempts = 1, round = 1, next_attempt_at = ${at}, claimable_at = ${at}`;

/** Transactions, buffers, and bytes of the write-ahead log. */
interface ServerCounts {
  transactions: number;
  buffers: number;
  logBytes: number;
}

const NOTHING: ServerCounts = { transactions: 0, buffers: 0, logBytes: 0 };

/** How to prepare and watch the database of an engine. */
interface Engine {
  name: string;
  side: Side;
  url: string | null;
  retry(): Promise<unknown>;
  /** What the server has counted so far; zeros for SQLite. */
  counts(): Promise<ServerCounts>;
}

function sqlite(folder: string): Engine {
  return {
    name: "SQLite",
    side: sqliteSide(folder),
    url: null,
    async retry() {
      using db = new Database(join(folder, "sds.db"));
      db.run(RETRIES(Date.now() + RETRY_WAIT_MS));
    },
    counts: async () => NOTHING,
  };
}

async function onPostgres(folder: string, name: string): Promise<Engine> {
  await postgres.sql("postgres").unsafe(`CREATE DATABASE ${name}`);
  /** Uses a new connection for each statement. When a connection ends, it has reported its costs to the server. */
  const run = async (statement: string) => {
    await using sql = postgres.sql(name);
    return await sql.unsafe(statement);
  };
  return {
    name: "PostgreSQL",
    side: postgres.side(name, folder),
    url: postgres.addressOf(name),
    async retry() {
      await run(RETRIES(Date.now() + RETRY_WAIT_MS));
      await run("VACUUM ANALYZE");
    },
    async counts() {
      await Bun.sleep(STATISTICS_DELAY_MS);
      const [row] = await run(`SELECT xact_commit::float8 AS transactions,
        (blks_hit + blks_read)::float8 AS buffers,
        (pg_current_wal_insert_lsn() - '0/0')::float8 AS "logBytes" FROM pg_stat_database WHERE datname = '${name}'`);
      return row as ServerCounts;
    },
  };
}

/** The cost of some work. */
interface Cost extends ServerCounts {
  /** Milliseconds of processor time of sds and the database. */
  ms: number;
}

async function costOf(engine: Engine, pid: () => number, work: () => Promise<unknown>, count: number): Promise<Cost> {
  const used = () => (processorSeconds(pid()) + engine.side.databaseSeconds()) * 1_000;
  const before = await engine.counts();
  const begun = used();
  await work();
  const ms = used() - begun;
  const after = await engine.counts();
  return {
    ms: ms / count,
    transactions: (after.transactions - before.transactions) / count,
    buffers: (after.buffers - before.buffers) / count,
    logBytes: (after.logBytes - before.logBytes) / count,
  };
}

async function measure(engine: Engine, folder: string, shops: number): Promise<Record<string, Cost>> {
  const server = engine.url === null ? null : { url: engine.url, file: null, passwordFile: null, sleep: Bun.sleep };
  const store = await openStore({
    ...{ folder, masterKeyFile: join(folder, "master.key"), busyTimeoutMs: 2_000, now: Date.now, random: randomBytes },
    server,
  });
  const { key, posts } = await fill(store, shops);
  await store.close();
  await engine.retry();
  let serving: Server | undefined;
  const pid = () => serving?.pid ?? process.pid;
  const before = engine.side.databaseSeconds();
  serving = await startServer(serveCommand(sds, folder), {
    ...engine.side.env,
    SDS_LOG: "error",
    SDS_EGRESS_ALLOW: "127.0.0.0/8",
  });
  await waitUntilReady(serving);
  const start = { ...NOTHING, ms: (processorSeconds(pid()) + engine.side.databaseSeconds() - before) * 1_000 };
  // After some seconds, sds has looked at everything for the first time.
  await Bun.sleep(5_000);
  const idle = await costOf(engine, pid, () => Bun.sleep(IDLE_SECONDS * 1_000), IDLE_SECONDS);
  const headers = { Authorization: `Bearer ${key}` };
  const page = async () => {
    for (let n = 0; n < PAGES; n += 1) await (await fetch(`${serving?.url}/api/v1/orders`, { headers })).arrayBuffer();
  };
  const pages = await costOf(engine, pid, page, PAGES);
  const events = posts(2).slice(0, EVENTS);
  const event = await costOf(
    engine,
    pid,
    async () => {
      for (const each of events) if (serving !== undefined) await post(serving, each);
    },
    events.length,
  );
  const night = posts(3).slice(0, MOST_RENEWALS);
  const renewals = await costOf(
    engine,
    pid,
    async () => postAll(serving === undefined ? [] : [serving], night, AT_ONCE),
    night.length,
  );
  const status = await costOf(
    engine,
    () => process.pid,
    () =>
      $`${sds} --data ${folder} status`
        .env({ ...process.env, ...engine.side.env })
        .nothrow()
        .quiet(),
    1,
  );
  const began = performance.now();
  await $`${sds} --data ${folder} status`
    .env({ ...process.env, ...engine.side.env })
    .nothrow()
    .quiet();
  const took = { ...status, ms: performance.now() - began };
  await serving[Symbol.asyncDispose]();
  return { start, "idle second": idle, page: pages, event, "renewal of a night": renewals, "`status` (elapsed)": took };
}

async function waitUntilReady({ url }: Server): Promise<void> {
  while (!(await fetch(`${url}/readyz`)).ok) await Bun.sleep(100);
}

print(`${machineLine()}\n`);
print("| engine | shops | operation | ms | transactions | buffers | bytes of the log |\n|---|---|---|---|---|---|---|");
for (const kind of ["sqlite", "postgres"])
  for (const shops of COUNTS) {
    const folder = mkdtempSync(join(tmpdir(), "sds-shops-"));
    const engine = kind === "sqlite" ? sqlite(folder) : await onPostgres(folder, `shops_${shops}`);
    for (const [name, { ms, transactions, buffers, logBytes }] of Object.entries(
      await measure(engine, folder, shops),
    )) {
      const counted = [transactions.toFixed(1), Math.round(buffers), Math.round(logBytes)];
      print(`| ${[engine.name, shops.toLocaleString("en"), name, ms.toFixed(2), ...counted].join(" | ")} |`);
    }
    rmSync(folder, { recursive: true, force: true });
  }
await postgres.stop();
