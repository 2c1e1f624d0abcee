import { expect, test } from "bun:test";
import { SQL } from "bun";
import { receipt } from "../../conformance/fixtures.ts";
import { START } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { eventually } from "../../support/eventually.ts";
import { hasPostgres } from "../../support/postgres-server.ts";
import { databaseWithTables, openStoreAt } from "../../support/postgres-store.ts";
import { customer, gid } from "../../support/records.ts";

/** Opens a store with a shop, and a connection to its database that can hold locks. */
async function openShop() {
  const url = await databaseWithTables();
  const store = await openStoreAt(url);
  const sql = new SQL(url, { max: 2 });
  afterTest(() => sql.close());
  const shop = await store.shops.add({ domain: "alpha.myshopify.com", plan: "pro", currency: "USD" }, START);

  async function waiting(): Promise<number> {
    const [row] = await sql.unsafe(
      "SELECT count(*)::int4 AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    return row.n;
  }
  return { store, sql, shop, waiting };
}

test.skipIf(!hasPostgres())("a search of the texts waits for a text that is just being stored", async () => {
  const { store, sql, shop, waiting } = await openShop();
  const other = Promise.withResolvers<void>();
  const stored = Promise.withResolvers<void>();
  const storing = sql.begin(async (tx) => {
    await tx.unsafe("SELECT 1 FROM shops FOR KEY SHARE");
    await tx.unsafe(
      `INSERT INTO inbox (shop_id, topic, subject, needs_platform, body, triggered_at, received_at, status, next_attempt_at)
       VALUES (${shop.id}, 'orders/create', 'x', false, '{"id":1,"email":"ada@example.com"}', 0, 0, 'waiting', 0)`,
    );
    stored.resolve();
    await other.promise;
  });
  await stored.promise;
  // This text gets a higher number than the other transaction's text, but is committed first.
  await store.inbox.receive([receipt(shop, null, { body: '{"id":2}' })], START);
  const searching = store.mirror.searchTexts(shop, new Set([gid.customer(1)]));
  await eventually(async () => (await waiting()) === 1);
  other.resolve();
  await storing;
  const search = await searching;
  const records = [{ type: "redaction" as const, shopifyId: gid.customer(1), asOf: START }];
  await store.mirror.applyRecords([{ shop, records }], START, [search]);
  search.end();
  const bodies = await sql.unsafe("SELECT body FROM inbox ORDER BY number");
  expect(bodies.map(({ body }: { body: string }) => body)).toEqual(['{"id":1,"email":null}', '{"id":2}']);
});

test.skipIf(!hasPostgres())("the removal of a shop waits for a commit that has found the shop", async () => {
  const { store, sql, shop, waiting } = await openShop();
  const other = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const holding = sql.begin(async (tx) => {
    // With this lock, rows can be read, but not written.
    await tx.unsafe("LOCK TABLE customers IN SHARE MODE");
    locked.resolve();
    await other.promise;
  });
  await locked.promise;
  const committing = store.mirror.applyRecords([{ shop, records: [customer(1)] }], START, []);
  await eventually(async () => (await waiting()) === 1);
  const removing = (async () => {
    await store.shops.beginRemoval(shop.domain, START);
    while (await store.shops.removeSome(shop.id));
  })();
  await eventually(async () => (await waiting()) === 2);
  other.resolve();
  await holding;
  expect(await committing).toEqual([{ accepted: 1, changed: 1, events: 0 }]);
  await removing;
  expect(await sql.unsafe("SELECT id FROM customers")).toHaveLength(0);
});
