import { describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { dueSearch } from "../../../src/store/postgres/due-search.ts";
import { START } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { hasPostgres } from "../../support/postgres-server.ts";
import { databaseWithTables } from "../../support/postgres-store.ts";

const PLAN = { table: "deliveries", queue: "kind", dueAt: "claimable_at" } as const;
const SHOPS = 3_000;
const HOUR_MS = 3_600_000;

interface Row {
  Plan: { "Shared Hit Blocks": number; "Shared Read Blocks": number };
}

/** Makes shops with one delivery each, and a function that searches and counts the buffers that it reads. */
async function manyShops(dueAt: number, count = SHOPS) {
  const sql = new SQL(await databaseWithTables(), { max: 3 });
  afterTest(() => sql.close());
  await sql.unsafe(`INSERT INTO shops (id, domain, plan, currency, created_at, intake_secret)
    SELECT n, 'shop-' || n || '.myshopify.com', 'pro', 'USD', 0, '' FROM generate_series(1, ${count}) AS n`);
  await sql.unsafe(`INSERT INTO deliveries
      (shop_id, id, kind, topic, test, body, secret_version, status, next_attempt_at, claimable_at, created_at)
    SELECT n, 'whd_' || n, 'webhook', 'order.charged', false, '{}', 1, 'pending', ${dueAt}, ${dueAt} + n % 7, 0
    FROM generate_series(1, ${count}) AS n`);
  await sql.unsafe("ANALYZE");
  const read = { buffers: 0, found: [] as unknown[] };
  const due = dueSearch(
    {
      async all<T>(text: string, parameters: readonly unknown[] = []) {
        const [{ "QUERY PLAN": plans }] = await sql.unsafe(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [
          ...parameters,
        ]);
        const [{ Plan: plan }] = plans as [Row];
        read.buffers += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
        read.found = await sql.unsafe(text, [...parameters]);
        return read.found as T[];
      },
    },
    PLAN,
  );
  async function search(now: number) {
    read.buffers = 0;
    const found = await due.find(now);
    return { found: found.length, buffers: read.buffers };
  }
  return { sql, search };
}

describe.skipIf(!hasPostgres())("a search for due deliveries", () => {
  test("costs what is due, however many shops have something planned for later", async () => {
    const { sql, search } = await manyShops(START + HOUR_MS);
    const searches = [await search(START), await search(START + 1_000), await search(START + 61_000)];
    await sql.unsafe(`UPDATE deliveries SET claimable_at = ${START + 62_000} WHERE shop_id IN (5, 2999)`);
    searches.push(await search(START + 63_000));
    expect(searches.map(({ found }) => found)).toEqual([0, 0, 0, 2]);
    expect(Math.max(...searches.map(({ buffers }) => buffers))).toBeLessThan(100);
  });

  test("reads the first of many due deliveries of a shop, and finds another shop's as before", async () => {
    const { sql, search } = await manyShops(START + HOUR_MS, 3);
    await sql.unsafe(`INSERT INTO deliveries
        (shop_id, id, kind, topic, test, body, secret_version, status, next_attempt_at, claimable_at, created_at)
      SELECT 1, 'whd_due_' || n, 'webhook', 'order.charged', false, '{}', 1, 'pending', ${START}, ${START}, 0
      FROM generate_series(1, 900) AS n`);
    await sql.unsafe("VACUUM ANALYZE deliveries");
    await search(START);
    const next = await search(START + 1_000);
    expect(next.found).toBe(1);
    expect(next.buffers).toBeLessThan(100);
    await sql.unsafe(`UPDATE deliveries SET claimable_at = ${START} WHERE shop_id = 3`);
    expect((await search(START + 2_000)).found).toBe(2);
    await sql.unsafe("UPDATE deliveries SET claimable_at = NULL, next_attempt_at = NULL, status = 'delivered'");
    expect((await search(START + 61_000)).found).toBe(0);
  });

  test("costs what is due, however many shops have something planned, also if more is due than a few rows", async () => {
    const { sql, search } = await manyShops(START + HOUR_MS);
    await sql.unsafe(`INSERT INTO deliveries
        (shop_id, id, kind, topic, test, body, secret_version, status, next_attempt_at, claimable_at, created_at)
      SELECT 2990 + n % 2, 'whd_due_' || n, 'webhook', 'order.charged', false, '{}', 1, 'pending', ${START}, ${START}, 0
      FROM generate_series(1, 200) AS n`);
    await sql.unsafe("VACUUM ANALYZE deliveries");
    for (const now of [START, START + 1_000, START + 2_000]) {
      const { found, buffers } = await search(now);
      expect(found).toBe(2);
      expect(buffers).toBeLessThan(500);
    }
  });

  test("finds the queues of all shops if more deliveries are due than one search reads", async () => {
    const { search } = await manyShops(START);
    expect((await search(START + 10)).found).toBe(SHOPS);
  });

  test("passes over deliveries that are done, which an old snapshot keeps", async () => {
    const { sql, search } = await manyShops(START);
    const old = await sql.reserve();
    afterTest(() => old.release());
    await old.unsafe("BEGIN ISOLATION LEVEL REPEATABLE READ");
    await old.unsafe("SELECT 1 FROM shops LIMIT 1");
    for (const lease of [START + 60_000, null])
      await sql.unsafe(
        `UPDATE deliveries SET claimable_at = ${lease}, next_attempt_at = ${lease},
           status = ${lease === null ? "'delivered'" : "status"}`,
      );
    const now = START + HOUR_MS;
    const [whole, next] = [await search(now), await search(now + 1_000)];
    expect([whole.found, next.found]).toEqual([0, 0]);
    expect(whole.buffers).toBeGreaterThan(100);
    expect(next.buffers).toBeLessThan(100);
  });
});
