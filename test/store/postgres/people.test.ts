import { expect, test } from "bun:test";
import { SQL } from "bun";
import { START } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { hasPostgres } from "../../support/postgres-server.ts";
import { databaseWithTables, openStoreAt } from "../../support/postgres-store.ts";
import { customer, gid } from "../../support/records.ts";

test.skipIf(!hasPostgres())("the data of a person may take longer than any other operation", async () => {
  const url = await databaseWithTables();
  const store = await openStoreAt(url, { deadlineMs: 400 });
  const shop = await store.shops.add({ domain: "alpha.myshopify.com", plan: "pro", currency: "USD" }, START);
  await store.mirror.applyRecords([{ shop, records: [customer(1)] }], START, []);
  const sql = new SQL(url, { max: 1 });
  afterTest(() => sql.close());

  const exported = await sql.begin(async (tx) => {
    await tx.unsafe("LOCK TABLE customers IN ACCESS EXCLUSIVE MODE");
    const began = store.people.export(shop, gid.customer(1));
    await tx.unsafe("SELECT pg_sleep(1)");
    // Wrapped in an object, because returning the promise itself would make the transaction await it.
    return { began };
  });
  expect(await exported.began).toMatchObject({ customer: { shopifyId: gid.customer(1) } });
});
