import { readFileSync } from "node:fs";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { UPGRADE } from "../../test/support/open-store.ts";
import { processorSeconds } from "./processor-time.ts";
import { ask, type Load, median, percentile, type Server, serveCommand, startPinnedServer } from "./servers.ts";
import * as shops from "./shops.ts";
import { machineLine, needTwoCores, Table } from "./table.ts";

const ROWS = 100_000;
const DELIVERIES = 1_000_000;
const METRICS_PORT = 19_464;
const WALKERS = 8;
const SCRAPES = 60;
const PAUSE_MS = 250;
const ROUNDS = 11;
const ROUND_S = 3;
const table = new Table();

/** Adds deliveries. If `state` is `failed`, they are dead or retrying, as after an endpoint has failed for a day. */
function addDeliveries(shop: shops.Shop, state: "delivered" | "failed"): void {
  const db = openDatabase(shops.databaseOf(shop), 30_000, UPGRADE);
  db.run("PRAGMA synchronous = OFF");
  const now = Date.now();
  const body = JSON.stringify({ id: "whd_1", topic: "order.charged", data: { note: "x".repeat(400) } });
  // Retries are due hours later, so that the sender does not attempt them.
  db.query(
    `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < $count),
       planned AS (SELECT n, CASE WHEN $isFailed THEN iif(n % 2, 'dead', 'retrying') ELSE 'delivered' END AS status FROM n)
     INSERT INTO deliveries (id, shop_id, kind, topic, test, body, secret_version, status, attempts, round,
       next_attempt_at, claimable_at, created_at, ended_at)
     SELECT 'whd_' || n, shops.id, 'webhook', 'order.charged', 0, $body, 1, status, 1, 1,
       iif(status = 'retrying', $now + 36000000 + n, NULL), iif(status = 'retrying', $now + 36000000 + n, NULL), $now,
       iif(status = 'retrying', NULL, $now)
     FROM planned, shops`,
  ).run({ count: DELIVERIES, body, now, isFailed: state === "failed" ? 1 : 0 });
  db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
}

function serve(shop: shops.Shop, metrics: boolean): Promise<Server> {
  const env = { SDS_RETRY_WAITS: "24h", ...(metrics && { SDS_METRICS: `127.0.0.1:${METRICS_PORT}` }) };
  return startPinnedServer(serveCommand(shops.SDS, shop.folder), env);
}

async function scrape(): Promise<{ ms: number; text: string }> {
  const beganMs = performance.now();
  const text = await (await fetch(`http://127.0.0.1:${METRICS_PORT}/metrics`)).text();
  return { ms: performance.now() - beganMs, text };
}

/** Scrapes for a quarter of a minute, because sds reads its figures every 15 seconds. */
async function scrapes(): Promise<string> {
  const times: number[] = [];
  for (let n = 0; n < SCRAPES; n += 1) {
    times.push((await scrape()).ms);
    await Bun.sleep(PAUSE_MS);
  }
  return `median ${median(times).toFixed(1)} ms, 95 % ${percentile(times, 0.95).toFixed(1)} ms, longest ${Math.max(...times).toFixed(1)} ms`;
}

/**
 * Walks through pages, each walker on its own. @returns a function that stops the walkers, and returns how many pages
 * they read
 */
function startWalkers({ server, key, paths }: Load): () => Promise<number> {
  let pages = 0;
  let stopped = false;
  const lines = readFileSync(paths, "utf8").trim().split("\n");
  const walkers = Array.from({ length: WALKERS }, async (_, index) => {
    for (let n = index; !stopped; n += WALKERS) {
      const path = lines[n % lines.length] ?? "";
      const answer = await fetch(`${server.url}${path}`, { headers: { Authorization: `Bearer ${key}` } });
      await answer.arrayBuffer();
      pages += 1;
    }
  });
  return async () => {
    stopped = true;
    await Promise.all(walkers);
    return pages;
  };
}

async function measureScrapes(shop: shops.Shop, name: string): Promise<void> {
  await using server = await serve(shop, true);
  const { text } = await scrape();
  const series = text.split("\n").filter((line) => line !== "" && !line.startsWith("#")).length;
  const before = processorSeconds(server.pid);
  for (let n = 0; n < 100; n += 1) await scrape();
  const perScrape = ((processorSeconds(server.pid) - before) / 100) * 1_000;
  table.addRemark(
    `${name}: processor time of a scrape`,
    `${perScrape.toFixed(1)} ms for ${series.toLocaleString("en")} series, ${(text.length / 1_000).toFixed(0)} kB`,
  );
  table.addRemark(`${name}: time of a scrape, without other work`, await scrapes());
  const stop = startWalkers({ server, key: shop.key, paths: shops.randomPages(shop, 50) });
  const beside = await scrapes();
  table.addRemark(`${name}: beside ${WALKERS} walkers (${(await stop()).toLocaleString("en")} pages)`, beside);
}

/**
 * Measures pages with and without metrics. Starts a new server for each measurement, because the speed of two processes
 * of one program can differ by 10 %.
 */
async function measureReads(shop: shops.Shop): Promise<void> {
  const paths = shops.randomPages(shop, 50);
  const times: Record<"on" | "off", number[]> = { on: [], off: [] };
  for (let round = 0; round < ROUNDS; round += 1)
    for (const name of ["on", "off"] as const) {
      await using server = await serve(shop, name === "on");
      const load = { server, key: shop.key, paths };
      await ask(load, 1);
      const before = processorSeconds(server.pid);
      const pages = (await ask(load, ROUND_S)) * ROUND_S;
      times[name].push(((processorSeconds(server.pid) - before) / pages) * 1e6);
      if (name === "on") await scrape();
    }
  const [withMetrics, without] = [median(times.on), median(times.off)];
  table.addRatioBelow(
    "Page of 50 with metrics against without, processor time",
    `${withMetrics.toFixed(1)} µs, without ${without.toFixed(1)} µs`,
    withMetrics / without,
    1.05,
  );
}

needTwoCores();
await shops.buildProgram();
const filled = await shops.filledShop(ROWS);
for (const state of ["delivered", "failed"] as const) {
  shops.tell(`Adding ${DELIVERIES.toLocaleString("en")} ${state} deliveries ...`);
  const shop = { ...filled, folder: shops.copyFolder(filled.folder, `${filled.folder}-${state}`) };
  addDeliveries(shop, state);
  await measureScrapes(shop, state === "delivered" ? "1,000,000 delivered" : "500,000 dead, 500,000 that wait");
  if (state === "delivered") await measureReads(shop);
}
process.stdout.write(`${machineLine()}\n\n${table}\n`);
