/**
 * Measures what a heartbeat and a delivery cost on PostgreSQL beside an old snapshot, as during a dump. The snapshot
 * keeps all dead rows: of a node's heartbeats in 24 hours, and of drained queues.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { openStore } from "../../src/store/open-store.ts";
import { claim, queueRewards, succeeded } from "../../test/conformance/delivery-fixtures.ts";
import { randomBytes } from "../../test/support/app.ts";
import { processorSeconds } from "./processor-time.ts";
import { startBenchServer } from "./sides.ts";
import { machineLine, Table } from "./table.ts";

/** One beat a second for 24 hours. */
const BEATS = 86_400;
const MEASURED_BEATS = 500;
const DELIVERIES = 6_000;
const BATCH = 100;
const TURNS = 500;

const server = await startBenchServer();
const folder = mkdtempSync(join(tmpdir(), "sds-bench-"));
const admin = server.sql("postgres");

/** Buffers that all statements of the database have used so far. */
async function buffersSoFar(): Promise<number> {
  // A connection reports its statistics only after a statement, and at most once a second.
  await Bun.sleep(1_100);
  await Promise.all([turn(), beat()]);
  const [counts] = await admin.unsafe(
    "SELECT (blks_hit + blks_read)::float8 AS n FROM pg_stat_database WHERE datname = 'bench'",
  );
  return counts.n;
}

interface Measured {
  ms: number;
  buffers: number;
}

/** Processor time of this program and the server so far. */
const processorMs = () => (processorSeconds(process.pid) + server.side("bench", folder).databaseSeconds()) * 1_000;

/** Runs an operation `count` times. @returns the processor time and the buffers of one run */
async function measure(count: number, operation: () => Promise<unknown>): Promise<Measured> {
  const buffersBefore = await buffersSoFar();
  const msBefore = processorMs();
  for (let n = 0; n < count; n += 1) await operation();
  const ms = (processorMs() - msBefore) / count;
  return { ms, buffers: ((await buffersSoFar()) - buffersBefore) / count };
}

/** Queues deliveries, then records a success for each. @returns the cost of one delivery, without queuing it */
async function drain(name: string): Promise<Measured> {
  const now = Date.now();
  for (let n = 0; n < DELIVERIES; n += BATCH)
    await queueRewards(
      store,
      shop,
      Array.from({ length: BATCH }, (_, index) => `${name}-${n + index}`),
      now,
    );
  const drained = await measure(DELIVERIES / BATCH, async () => {
    await store.deliveries.dueQueues(now + 1);
    const claims = await claim(store, shop, { share: BATCH, now: now + 1 });
    const ended = claims.map((each) => succeeded(each, now + 1));
    await store.deliveries.recordAndClaim(ended, [], now + 2, now + 2, []);
  });
  return { ms: drained.ms / BATCH, buffers: drained.buffers / BATCH };
}

await admin.unsafe("CREATE DATABASE bench");
const store = await openStore({
  ...{ folder, masterKeyFile: join(folder, "master.key"), busyTimeoutMs: 2_000, now: Date.now, random: randomBytes },
  server: { url: server.addressOf("bench"), passwordFile: null, sleep: Bun.sleep },
});
const shop = await store.shops.add({ domain: "a.myshopify.com", plan: "pro", currency: "USD" }, Date.now());
await store.webhooks.set(shop.id, { url: "https://hooks.example.com", topics: TOPIC_NAMES }, Date.now());
const beat = async () => store.nodes?.beat();
const turn = () => store.deliveries.dueQueues(Date.now());

await drain("first");
const before = {
  beat: await measure(MEASURED_BEATS, beat),
  turn: await measure(TURNS, turn),
  delivery: await drain("a"),
};
const reader = server.sql("bench");
await reader.unsafe("BEGIN ISOLATION LEVEL REPEATABLE READ");
await reader.unsafe("SELECT 1 FROM shops");
for (let n = 0; n < BEATS; n += 1) await beat();
const [kept] = await reader.unsafe("SELECT pg_relation_size('nodes')::float8 AS bytes");
const drained = await drain("b");
const beside = {
  beat: await measure(MEASURED_BEATS, beat),
  turn: await measure(TURNS, turn),
  delivery: await drain("c"),
};
await reader.unsafe("COMMIT");
await admin.unsafe("SELECT 1");

const table = new Table();
const line = ({ ms, buffers }: Measured) => `${ms.toFixed(2)} ms, ${buffers.toFixed(0)} buffers`;
for (const name of ["beat", "turn", "delivery"] as const)
  table.addRemark(name, `${line(before[name])} before`, `${line(beside[name])} beside the snapshot`);
table.addRatioBelow(
  "a drained delivery",
  `${line(before.delivery)}; ${line(drained)}`,
  drained.ms / before.delivery.ms,
  1.5,
);
table.addRatioBelow("the next ones", line(beside.delivery), beside.delivery.ms / before.delivery.ms, 1.5);
table.addRemark("the table of nodes", `${(kept.bytes / 1e6).toFixed(1)} MB`);
process.stdout.write(`${machineLine()}\n\n${table}\n`);

await reader.close();
await store.close();
await admin.close();
await server.stop();
rmSync(folder, { recursive: true });
