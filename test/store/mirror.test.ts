import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import type { MirrorRecord } from "../../src/domain/platform-records.ts";
import { START, type TestApp, testApp } from "../support/app.ts";
import { cancelFlow, customer, order, reward, subscription } from "../support/records.ts";

function rows(test: TestApp, sql: string): Record<string, unknown>[] {
  const db = new Database(join(test.folder, "data", "sds.db"), { readonly: true });
  try {
    return db.query<Record<string, unknown>, []>(sql).all();
  } finally {
    db.close();
  }
}

test("every written row takes the shop's next change number, a customer's included when its subscriptionCount changes", async () => {
  const test = await testApp();
  const { shop } = await test.addShop();
  const submit = (records: MirrorRecord[]) => test.app.store.mirror.applyRecords([{ shop, records }], START);
  await submit([customer(1), customer(2)]);
  const numbers = () => rows(test, "SELECT json ->> 'shopifyId' AS gid, change_number AS number FROM customers ORDER BY gid").map(({ number }) => number);
  expect(numbers()).toEqual([1, 2]);
  await submit([subscription(1)]);
  expect(numbers()).toEqual([4, 2]);
  await submit([order(1, 1), reward("r"), cancelFlow("c")]);
  expect(rows(test, "SELECT change_count FROM shops")).toEqual([{ change_count: 8 }]);
  await submit([order(1, 1), subscription(1), customer(1)]);
  expect(rows(test, "SELECT change_count FROM shops")).toEqual([{ change_count: 8 }]);
});

test("a refused submission leaves no trace, and those beside it are applied", async () => {
  const test = await testApp();
  const alpha = await test.addShop("alpha.myshopify.com");
  const beta = await test.addShop("beta.myshopify.com");
  const results = await test.app.store.mirror.applyRecords(
    [
      { shop: alpha.shop, records: [customer(1)] },
      { shop: alpha.shop, records: [customer(2), order(9, 1), customer(3)] },
      { shop: beta.shop, records: [customer(4)] },
    ],
    START,
  );
  expect(results).toEqual([
    { accepted: 1, changed: 1, events: 0 },
    { refused: { index: 1, field: "subscription", reason: "names a contract that is not in the mirror: gid://shopify/SubscriptionContract/9" } },
    { accepted: 1, changed: 1, events: 0 },
  ]);
  expect((await alpha.all("customers")).map(({ shopifyId }) => shopifyId)).toEqual(["gid://shopify/Customer/1"]);
  expect((await beta.all("customers")).map(({ shopifyId }) => shopifyId)).toEqual(["gid://shopify/Customer/4"]);
});

test("a record sees what those before it in the same commit did", async () => {
  const test = await testApp();
  const { shop, all } = await test.addShop();
  await test.app.store.mirror.applyRecords(
    [
      { shop, records: [subscription(1), order(1, 1), order(1, 2)] },
      { shop, records: [order(1, 3)] },
    ],
    START,
  );
  expect((await all("subscriptions"))[0]).toMatchObject({ cyclesCompleted: 3 });
});

test("what is for a shop that was removed meanwhile is refused, and ends in no other shop", async () => {
  const test = await testApp();
  const { shop } = await test.addShop("alpha.myshopify.com");
  await test.app.store.shops.remove("alpha.myshopify.com");
  const { all } = await test.addShop("beta.myshopify.com");
  const results = await test.app.store.mirror.applyRecords([{ shop, records: [customer(1)] }], START);
  expect(results[0]).toMatchObject({ refused: { reason: "is for a shop that was removed: alpha.myshopify.com" } });
  expect(await all("customers")).toEqual([]);
});

test("removing a shop removes all that is held of it", async () => {
  const test = await testApp();
  const { shop } = await test.addShop();
  await test.app.store.mirror.applyRecords([{ shop, records: [subscription(1), order(1, 1), reward("r")] }], START);
  await test.app.store.inbox.receive(
    [{ shopId: shop.id, webhookId: "w", topic: "orders/create", subject: "s", needsPlatform: true, body: "{}", triggeredAt: START }],
    START,
  );
  expect(await test.app.store.shops.remove(shop.domain)).toBe(true);
  expect(await test.app.store.shops.remove(shop.domain)).toBe(false);
  for (const table of ["shops", "api_keys", "customers", "subscriptions", "orders", "occurrences", "platform_webhooks", "inbox"]) {
    expect(rows(test, `SELECT count(*) AS n FROM ${table}`)).toEqual([{ n: 0 }]);
  }
});

test("a failed commit keeps nothing of it", async () => {
  const test = await testApp();
  const { shop, all } = await test.addShop();
  const broken = {
    ...subscription(2),
    get lines(): never {
      throw new Error("a defect");
    },
  };
  expect(test.app.store.mirror.applyRecords([{ shop, records: [customer(1), broken] }], START)).rejects.toThrow("a defect");
  expect(await all("customers")).toEqual([]);
});

test("a mirror rebuilt from nothing has the same ids", async () => {
  const ids = async () => {
    const { app, addShop } = await testApp();
    const { shop, all } = await addShop();
    await app.store.mirror.applyRecords([{ shop, records: [subscription(1), order(1, 1)] }], START);
    return [...(await all("customers")), ...(await all("subscriptions")), ...(await all("orders"))].map(({ id }) => id);
  };
  expect(await ids()).toEqual(await ids());
});
