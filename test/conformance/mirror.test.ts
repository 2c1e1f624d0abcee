import { describe, expect, test } from "bun:test";
import type { Submission } from "../../src/domain/decide/commit.ts";
import type { MirrorRecord } from "../../src/domain/records/platform-records.ts";
import { START } from "../support/app.ts";
import { cancelFlow, customer, gid, order, reward, subscription } from "../support/records.ts";
import { TABLE_NAMES } from "../support/tables.ts";
import { engines, storeWithShop, storeWithTwoShops, type TestStore } from "./engines.ts";
import { addShop, allRows, chooseAllEvents, commit, expectConflict, receipt, removeShop } from "./fixtures.ts";

const unknownContract = {
  field: "subscription",
  reason: `names a contract that is not in the mirror: ${gid.contract(9)}`,
};

describe.each(engines())("$name: a commit", (engine) => {
  test("applies each record on top of the earlier records in the same commit", async () => {
    const { store, shop } = await storeWithShop(engine);
    const results = await store.mirror.applyRecords(
      [
        { shop, records: [subscription(1), order(1, 1), order(1, 2)] },
        { shop, records: [order(1, 3), order(1, 3)] },
      ],
      START,
      [],
    );
    expect(results).toEqual([
      { accepted: 3, changed: 3, events: 0 },
      { accepted: 2, changed: 1, events: 0 },
    ]);
    expect((await allRows(store, shop, "subscriptions"))[0]).toMatchObject({ cyclesCompleted: 3 });
  });

  test("gives each submission its result in order, and stores nothing of a refused submission", async () => {
    const { store, rows, shop: alpha, other: beta } = await storeWithTwoShops(engine);
    await chooseAllEvents(store, alpha);
    await store.inbox.receive([receipt(alpha, "w1")], START);
    const inbox = await rows("inbox");
    const results = await store.mirror.applyRecords(
      [
        { shop: alpha, records: [customer(1)] },
        {
          shop: alpha,
          records: [customer(2), subscription(2), reward("r"), order(9, 1), customer(3)],
          inboxNumbers: inbox.map(({ number }) => Number(number)),
        },
        { shop: beta, records: [customer(4)] },
      ],
      START,
      [],
    );
    expect(results).toEqual([
      { accepted: 1, changed: 1, events: 0 },
      { refused: { index: 3, ...unknownContract } },
      { accepted: 1, changed: 1, events: 0 },
    ]);
    expect(
      (await rows("customers")).map(({ shop_id, json, change_number }) => [
        shop_id,
        JSON.parse(String(json)).shopifyId,
        change_number,
      ]),
    ).toEqual([
      [alpha.id, gid.customer(1), 1],
      [beta.id, gid.customer(4), 1],
    ]);
    for (const table of ["subscriptions", "occurrences", "deliveries"] as const) expect(await rows(table)).toEqual([]);
    expect(await rows("inbox")).toEqual(inbox);
    expect(await store.shops.rowCounts(alpha.id)).toEqual({ customers: 1, subscriptions: 0, orders: 0 });
  });

  test("of no submissions, or of submissions without records, changes nothing", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    const before = await rows("shops");
    expect(await store.mirror.applyRecords([], START, [])).toEqual([]);
    expect(await store.mirror.applyRecords([{ shop, records: [] }], START, [])).toEqual([
      { accepted: 0, changed: 0, events: 0 },
    ]);
    expect(await rows("shops")).toEqual(before);
  });

  test("for a removed shop is refused, and its records do not reach another shop", async () => {
    const { store, rows } = await engine.open();
    const [alpha, gamma] = [await addShop(store, "alpha"), await addShop(store, "gamma")];
    await removeShop(store, alpha.domain);
    await addShop(store, "beta");
    const results = await store.mirror.applyRecords(
      [
        { shop: alpha, records: [customer(1)] },
        { shop: gamma, records: [customer(2)] },
      ],
      START,
      [],
    );
    expect(results).toEqual([
      { refused: { index: 0, field: "", reason: "is for a shop that was removed: alpha.myshopify.com" } },
      { accepted: 1, changed: 1, events: 0 },
    ]);
    expect((await rows("customers")).map(({ shop_id }) => shop_id)).toEqual([gamma.id]);
  });

  test("that fails while it decides stores nothing", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    const broken = {
      ...subscription(2),
      get lines(): never {
        throw new Error("a defect");
      },
    };
    await expect(store.mirror.applyRecords([{ shop, records: [customer(1), broken] }], START, [])).rejects.toThrow(
      "a defect",
    );
    expect(await rows("customers")).toEqual([]);
  });

  test("that fails while it writes stores nothing", async () => {
    // Constant random bytes give two deliveries the same id, which the unique index refuses.
    const { store, rows } = await engine.open({ random: (bytes) => new Uint8Array(bytes) });
    const shop = await addShop(store);
    await chooseAllEvents(store, shop);
    await store.inbox.receive([receipt(shop, "w1")], START);
    const inboxNumbers = (await rows("inbox")).map(({ number }) => Number(number));
    const before = await Promise.all(TABLE_NAMES.map(rows));
    const submission: Submission = { shop, records: [subscription(1), order(1, 1), reward("r")], inboxNumbers };
    await expectConflict(store.mirror.applyRecords([submission], START, []));
    expect(await Promise.all(TABLE_NAMES.map(rows))).toEqual(before);
  });

  test("gives the same record the same id in every mirror", async () => {
    const ids = async () => {
      const { store, shop } = await storeWithShop(engine);
      await commit(store, shop, [subscription(1), order(1, 1)]);
      const resources = ["customers", "subscriptions", "orders"] as const;
      return Promise.all(resources.map(async (resource) => (await allRows(store, shop, resource)).map(({ id }) => id)));
    };
    expect(await ids()).toEqual(await ids());
  });

  test("counts the shop's rows of each resource, even if rows are written twice", async () => {
    const { store, shop: alpha, other: beta } = await storeWithTwoShops(engine);
    await commit(store, alpha, [subscription(1), subscription(2), order(1, 1), order(1, 2), order(2, 1), order(1, 1)]);
    await commit(store, alpha, [subscription(1, { status: "PAUSED" }), subscription(3), customer(1), reward("r")]);
    expect(await store.shops.rowCounts(alpha.id)).toEqual({ customers: 3, subscriptions: 3, orders: 3 });
    expect(await store.shops.rowCounts(beta.id)).toEqual({ customers: 0, subscriptions: 0, orders: 0 });
  });
});

describe.each(engines())("$name: change numbers", (engine) => {
  const numbersOf = async ({ rows }: TestStore) => {
    const tables = await Promise.all((["customers", "subscriptions", "orders", "occurrences"] as const).map(rows));
    return Object.fromEntries(
      tables.flat().map(({ json, change_number }) => [nameOf(JSON.parse(String(json))), change_number]),
    );
  };
  const nameOf = ({ shopifyId, id }: Record<string, string>) => (shopifyId ?? id ?? "").replace("gid://shopify/", "");

  test("are the shop's next numbers in the order of the writes, one for every changed row", async () => {
    const { shop, ...opened } = await storeWithShop(engine);
    await commit(opened.store, shop, [customer(1), customer(2)]);
    expect(await numbersOf(opened)).toEqual({ "Customer/1": 1, "Customer/2": 2 });
    // The customer changes with the contract, because its subscriptionCount changes.
    await commit(opened.store, shop, [subscription(1)]);
    expect(await numbersOf(opened)).toEqual({ "Customer/1": 4, "Customer/2": 2, "SubscriptionContract/1": 3 });
    await commit(opened.store, shop, [order(1, 1), reward("r"), cancelFlow("c")]);
    expect(await numbersOf(opened)).toEqual({
      "Customer/1": 4,
      "Customer/2": 2,
      "Order/1001": 5,
      "SubscriptionContract/1": 6,
      r: 7,
      c: 8,
    });
    expect((await opened.rows("shops"))[0]).toMatchObject({ change_count: 8 });
  });

  test("are not used up by records that change nothing", async () => {
    const { shop, ...opened } = await storeWithShop(engine);
    const records: MirrorRecord[] = [subscription(1), order(1, 1), customer(1), reward("r")];
    await commit(opened.store, shop, records);
    const before = await numbersOf(opened);
    expect(await commit(opened.store, shop, records)).toEqual({ accepted: 4, changed: 0, events: 0 });
    expect(await numbersOf(opened)).toEqual(before);
    expect((await opened.rows("shops"))[0]).toMatchObject({ change_count: 4 });
  });

  test("count a row once that changes several times in a commit, separately for each shop", async () => {
    const opened = await engine.open();
    const [alpha, beta] = [await addShop(opened.store, "alpha"), await addShop(opened.store, "beta")];
    const submissions = [
      { shop: alpha, records: [customer(1), customer(1, { firstName: "Ada" })] },
      { shop: beta, records: [customer(7)] },
      { shop: alpha, records: [customer(2), customer(1, { firstName: "Grace" })] },
    ];
    await opened.store.mirror.applyRecords(submissions, START, []);
    expect(await numbersOf(opened)).toEqual({ "Customer/1": 1, "Customer/2": 2, "Customer/7": 1 });
    expect((await opened.rows("shops")).map(({ change_count }) => change_count)).toEqual([2, 1]);
  });

  test("are unique and without a gap when two processes commit at once", async () => {
    const opened = await engine.open();
    const other = await opened.reopen();
    const shop = await addShop(opened.store);
    const submissions = Array.from({ length: 20 }, (_, n) => [
      { shop, records: [customer(2 * n + 1), customer(2 * n + 2)] },
    ]);
    await Promise.all(
      submissions.map((each, n) => (n % 2 === 0 ? opened.store : other).mirror.applyRecords(each, START, [])),
    );
    const numbers = (await opened.rows("customers"))
      .map(({ change_number }) => Number(change_number))
      .sort((a, b) => a - b);
    expect(numbers).toEqual(Array.from({ length: 40 }, (_, n) => n + 1));
    expect((await opened.rows("shops"))[0]).toMatchObject({ change_count: 40, customer_count: 40 });
  });
});
