import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { START, temporaryFolder } from "../support/app.ts";
import { openStoreIn } from "../support/open-store.ts";
import { processorMs } from "../support/processor-time.ts";

const SEARCHES = 100;

/**
 * Makes shops with one delivery each, due in a minute.
 * @returns the milliseconds that some searches for due deliveries took
 */
async function timeSearches(shops: number): Promise<number> {
  const folder = temporaryFolder();
  const store = await openStoreIn(folder);
  using db = new Database(join(folder, "sds.db"));
  db.run(`WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${shops})
    INSERT INTO shops (id, domain, plan, currency, created_at, intake_secret)
    SELECT n, 'shop-' || n || '.myshopify.com', 'pro', 'USD', 0, x'00' FROM numbers`);
  db.run(`INSERT INTO deliveries
      (id, shop_id, kind, topic, test, body, secret_version, status, next_attempt_at, claimable_at, created_at)
    SELECT 'whd_' || id, id, 'webhook', 'order.charged', 0, '{}', 1, 'retrying', ${START + 60_000}, ${START + 60_000}, 0
    FROM shops`);
  expect(await store.deliveries.dueQueues(START)).toEqual([]);
  expect(await store.deliveries.dueQueues(START + 60_000)).toHaveLength(shops);
  const ms = await processorMs(async () => {
    for (let n = 0; n < SEARCHES; n += 1) await store.deliveries.dueQueues(START);
  });
  await store.close();
  return ms;
}

test("a search for due deliveries does not cost what is planned for later", async () => {
  const few = await timeSearches(2);
  expect(await timeSearches(3_000)).toBeLessThan(20 * few + 5);
});
