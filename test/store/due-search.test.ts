import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import type { DeliveryQueue } from "../../src/store/port/deliveries.ts";
import { START, temporaryFolder } from "../support/app.ts";
import { openStoreIn } from "../support/open-store.ts";
import { processorMs } from "../support/processor-time.ts";

const SEARCHES = 1_000;

/** Opens a store with shops and planned deliveries. @param deliveries SQL that selects shop, number and due time */
async function storeWith(shops: number, deliveries: string) {
  const folder = temporaryFolder();
  const store = await openStoreIn(folder);
  using db = new Database(join(folder, "sds.db"));
  db.run(`WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${shops})
    INSERT INTO shops (id, domain, plan, currency, created_at, intake_secret)
    SELECT n, 'shop-' || n || '.myshopify.com', 'pro', 'USD', 0, x'00' FROM numbers`);
  db.run(`INSERT INTO deliveries
      (id, shop_id, kind, topic, test, body, secret_version, status, next_attempt_at, claimable_at, created_at)
    SELECT 'whd_' || number, shop, 'webhook', 'order.charged', 0, '{}', 1, 'retrying', at, at, 0
    FROM (${deliveries})`);
  return store.deliveries;
}

/**
 * Returns the processor time of many searches, in milliseconds. Makes the same searches before the measurement, because
 * the first searches are slow.
 */
async function timeSearches(deliveries: Pick<DeliveryQueue, "dueQueues">): Promise<number> {
  const search = async () => {
    for (let n = 0; n < SEARCHES; n += 1) await deliveries.dueQueues(START);
  };
  await search();
  return processorMs(search);
}

test("a search for due deliveries does not cost what is planned for later", async () => {
  const times: number[] = [];
  for (const shops of [2, 3_000]) {
    const deliveries = await storeWith(shops, `SELECT id AS shop, id AS number, ${START + 60_000} AS at FROM shops`);
    expect(await deliveries.dueQueues(START)).toEqual([]);
    expect(await deliveries.dueQueues(START + 60_000)).toHaveLength(shops);
    times.push(await timeSearches(deliveries));
  }
  expect(times[1]).toBeLessThan(20 * (times[0] ?? 0) + 5);
});

test("a search for due deliveries does not read all due deliveries of a shop, and finds other shops", async () => {
  const times: number[] = [];
  // With 100 due deliveries of one queue, a search already needs its second step. More deliveries need no further step.
  for (const count of [100, 5_000]) {
    const deliveries = await storeWith(
      3,
      `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count + 2})
       SELECT max(n - ${count - 1}, 1) AS shop, n AS number, ${START} + (n > ${count + 1}) AS at FROM numbers`,
    );
    expect(await deliveries.dueQueues(START)).toHaveLength(2);
    times.push(await timeSearches(deliveries));
    expect(await deliveries.dueQueues(START + 1)).toHaveLength(3);
  }
  expect(times[1]).toBeLessThan(3 * (times[0] ?? 0) + 5);
});
