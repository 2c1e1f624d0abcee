import { describe, expect, test } from "bun:test";
import { type ConnectedShop, connected, DOMAIN, HOUR_MS, LINE, seeded, seededAndLoaded } from "../support/connected.ts";
import type { FieldFaultCode } from "../support/platform/shop-options.ts";

const MINUTE_MS = 60_000;

/** Breaks a field of the fourth contract. */
function breakContract(all: ConnectedShop, field: string, code?: FieldFaultCode): string {
  const bad = all.remote.ids("contract")[3] ?? "";
  all.remote.breakField(bad, field, code);
  return bad;
}

async function mirrored(all: ConnectedShop): Promise<unknown[]> {
  return (await all.shop.all("subscriptions")).map(({ shopifyId }) => shopifyId);
}

/** Fields whose error leaves the rest of a page, and fields whose error removes the whole page. */
const FIELDS = ["SubscriptionContract.nextBillingDate", "SubscriptionContract.status", "SubscriptionLine.title"];

describe.each(FIELDS)("a contract whose %s always fails", (field) => {
  test.each([true, false])("is left out by a load, which names it; the error has a path: %p", async (errorPaths) => {
    const all = await seeded({ contracts: 20, linesEach: 1, renewals: 2 });
    Object.assign(all.remote, { errorPaths });
    const bad = breakContract(all, field);
    expect(await all.load()).toMatchObject({ customers: 20, subscriptions: 19, skipped: 1 });
    expect(await mirrored(all)).toHaveLength(19);
    const error = "the platform answered: Internal error.";
    expect(await all.inbox()).toMatchObject([{ subject: bad, status: "waiting", attempts: 0, error }]);
    expect(JSON.stringify(all.logged("cannot be mirrored now"))).toContain(bad);
    all.remote.breakField(bad, field, null);
    await all.processedAfter(MINUTE_MS);
    expect(await mirrored(all)).toContain(bad);
    expect(await all.inbox()).toEqual([]);
  });

  test("does not stop the reconciliation, and has one item in the inbox after many", async () => {
    const all = await seededAndLoaded({ contracts: 20, linesEach: 1, renewals: 1 });
    const bad = breakContract(all, field);
    const other = all.remote.ids("contract")[15] ?? "";
    for (let hour = 0; hour < 3; hour += 1) {
      all.remote.updateContract(bad, { lines: [LINE] });
      all.remote.failAttempt(all.remote.startAttempt(bad, 2));
      if (hour === 0) all.remote.pause(other);
      all.remote.outgoing.length = 0;
      all.test.clock.ms += HOUR_MS;
      // The list of contracts and the list of attempts find the same contract. It is counted as skipped only once.
      expect(await all.reconcile()).toMatchObject({ skipped: 1 });
    }
    const rows = await all.shop.all("subscriptions");
    expect(rows.find(({ shopifyId }) => shopifyId === other)).toMatchObject({ status: "PAUSED" });
    expect(await all.inbox()).toMatchObject([{ subject: bad }]);
    const { syncs } = all.test.app.store;
    expect(await syncs.unfinished(all.shop.shop.id, "changes")).toBeUndefined();
  });

  test("delays no platform webhooks about others", async () => {
    const all = await seededAndLoaded({ contracts: 40, linesEach: 1, renewals: 1 });
    const bad = breakContract(all, field);
    const others = all.remote.ids("contract").filter((id) => id !== bad);
    for (const id of [bad, ...others]) all.remote.pause(id);
    const begun = all.platform.requests.length;
    await all.deliverAll();
    const statuses = (await all.shop.all("subscriptions")).map(({ shopifyId, status }) => [shopifyId, status]);
    expect(statuses.filter(([, status]) => status === "PAUSED")).toHaveLength(39);
    expect(await all.inbox()).toMatchObject([{ subject: bad, attempts: 1, status: "waiting" }]);
    expect((await all.inbox())[0]?.error).toContain("Internal error");
    // The other contracts are read together, as if no contract were broken.
    const queries = all.operations(begun).filter((operation) => operation === "Nodes");
    expect(queries.length).toBeLessThan(12);
  });
});

describe("an object that never answers has one item in the inbox", () => {
  test("after many runs without `serve`, at most one more for its orders, which is merged", async () => {
    const all = await seededAndLoaded({ contracts: 5, linesEach: 1, renewals: 1 });
    const since = all.test.clock.ms;
    const bad = breakContract(all, "SubscriptionContract.status");
    const checkout = all.remote.originOrder(bad) ?? "";
    all.remote.pause(bad);
    all.remote.updateOrder(checkout, { lines: [{ title: "Tea", price: "3.00" }] });
    all.remote.outgoing.length = 0;
    for (let run = 0; run < 3; run += 1) {
      all.test.clock.ms += HOUR_MS;
      expect(await all.reconcile(since)).toMatchObject({ skipped: 1 });
      expect((await all.inbox()).map(({ subject }) => subject)).toEqual([bad, bad]);
    }
    expect(all.logged("cannot be mirrored now")).toHaveLength(3);
    await all.processedAfter(MINUTE_MS);
    expect(await all.inbox()).toMatchObject([{ subject: bad }]);
    all.remote.mendFields();
    await all.processedAfter(HOUR_MS);
    expect(await all.inbox()).toEqual([]);
    expect(await all.shop.all("orders")).toContainEqual(expect.objectContaining({ totalCents: 300 }));
  });

  test("which has the error of the last run", async () => {
    const all = await seeded({ contracts: 5, linesEach: 1 });
    const bad = breakContract(all, "SubscriptionContract.status");
    await all.load();
    expect(await all.inbox()).toMatchObject([{ error: "the platform answered: Internal error." }]);
    all.remote.breakField(bad, "SubscriptionContract.status", "ACCESS_DENIED");
    await all.load();
    expect(await all.inbox()).toMatchObject([{ subject: bad, error: expect.stringContaining("denied") }]);
  });

  test("after many webhooks about it and its orders, and all orders are read at last", async () => {
    const all = await seededAndLoaded({ contracts: 5, linesEach: 1, renewals: 1 });
    const bad = breakContract(all, "SubscriptionContract.status");
    const checkout = all.remote.originOrder(bad) ?? "";
    all.remote.pause(bad);
    all.remote.activate(bad);
    const renewal = all.remote.succeedAttempt(all.remote.startAttempt(bad, 2));
    all.remote.updateOrder(checkout, { lines: [{ title: "Tea", price: "3.00" }] });
    await all.deliverAll();
    for (let n = 0; n < 3; n += 1) await all.processedAfter(MINUTE_MS);
    expect(await all.inbox()).toMatchObject([{ subject: bad, status: "waiting" }]);
    all.remote.breakField(bad, "SubscriptionContract.status", null);
    await all.processedAfter(HOUR_MS);
    expect(await all.inbox()).toEqual([]);
    const orders = (await all.shop.all("orders")).map(({ shopifyId, totalCents }) => [shopifyId, totalCents]);
    expect(orders).toContainEqual([checkout, 300]);
    expect(orders.map(([id]) => id)).toContain(renewal);
  });

  test("also after it failed for good and changed again", async () => {
    const all = await seededAndLoaded({ contracts: 5, linesEach: 1, renewals: 1 });
    const bad = breakContract(all, "SubscriptionContract.status");
    all.remote.pause(bad);
    await all.deliverAll();
    for (let hour = 0; hour < 40; hour += 1) await all.processedAfter(HOUR_MS);
    expect(await all.inbox()).toMatchObject([{ subject: bad, status: "failed" }]);
    all.remote.activate(bad);
    await all.deliverAll();
    await all.processedAfter(MINUTE_MS);
    expect(await all.inbox()).toMatchObject([{ subject: bad, status: "waiting" }]);
  });
});

test("a contract with bad data has one item in the inbox after many webhooks about it and its orders", async () => {
  const all = await seededAndLoaded({ contracts: 3, linesEach: 1, renewals: 1 });
  const [bad = ""] = all.remote.ids("contract");
  const checkout = all.remote.originOrder(bad) ?? "";
  all.remote.updateContract(bad, { lines: [{ ...LINE, price: "-1.00" }] });
  for (let n = 0; n < 6; n += 1) {
    if (n % 2 === 0) all.remote.pause(bad);
    else all.remote.activate(bad);
    all.remote.updateOrder(checkout, { lines: [{ title: "Tea", price: `${n}.00` }] });
    await all.deliverAll();
    await all.processedAfter(n * HOUR_MS);
  }
  await all.processedAfter(HOUR_MS);
  const error = "the platform sent an invalid amount: -1.0 USD";
  expect(await all.inbox()).toMatchObject([{ subject: bad, status: "waiting", error }]);
  all.remote.updateContract(bad, { lines: [LINE] });
  all.remote.outgoing.length = 0;
  await all.processedAfter(HOUR_MS);
  expect(await all.inbox()).toEqual([]);
  expect(await all.shop.all("orders")).toContainEqual(
    expect.objectContaining({ shopifyId: checkout, totalCents: 500 }),
  );
});

describe("a change that a reconciliation could not read is read after a new connection", () => {
  const LEAVES = {
    "an uninstallation": async (all: ConnectedShop) => {
      all.remote.uninstall();
      await all.deliverAll();
    },
    "a disconnection": async ({ test, shop }: ConnectedShop) => {
      await test.app.store.connections.disconnect(shop.shop.id, Number.MAX_SAFE_INTEGER);
    },
  };
  type Leave = (typeof LEAVES)[keyof typeof LEAVES];

  /** Reconciles, ends the connection for hours, mends all fields, and connects the shop again. */
  async function reconnect(all: ConnectedShop, leave: Leave): Promise<void> {
    const { app, clock } = all.test;
    clock.ms += HOUR_MS;
    expect(await all.reconcile()).toMatchObject({ skipped: 1 });
    await leave(all);
    expect(await app.store.connections.find(all.shop.shop.id)).toBeUndefined();
    for (let hour = 0; hour < 3; hour += 1) await all.processedAfter(HOUR_MS);
    all.remote.mendFields();
    all.remote.install();
    await app.platform.connect(DOMAIN, { kind: "client_credentials" });
    await app.reconciler.runOnce();
    all.remote.outgoing.length = 0;
    clock.ms += HOUR_MS;
    await all.processedAfter(HOUR_MS);
    expect(await all.inbox()).toEqual([]);
  }

  /** A contract that cannot be read, and whose checkout and status have changed. */
  async function withChanges() {
    const all = await seededAndLoaded({ contracts: 5, linesEach: 1, renewals: 1 });
    const bad = breakContract(all, "SubscriptionContract.status");
    all.test.clock.ms += HOUR_MS;
    all.remote.pause(bad);
    all.remote.updateOrder(all.remote.originOrder(bad) ?? "", { lines: [{ title: "Tea", price: "3.00" }] });
    return all;
  }

  async function expectChanges(all: ConnectedShop): Promise<void> {
    expect(await all.shop.all("subscriptions")).toContainEqual(expect.objectContaining({ status: "PAUSED" }));
    expect(await all.shop.all("orders")).toContainEqual(expect.objectContaining({ totalCents: 300 }));
  }

  describe.each(Object.entries(LEAVES))("after %s", (_, leave) => {
    test("if its webhooks were lost", async () => {
      const all = await withChanges();
      all.remote.outgoing.length = 0;
      await reconnect(all, leave);
      await expectChanges(all);
    });

    test("if its webhooks waited in the inbox", async () => {
      const all = await withChanges();
      await all.deliverAll();
      await reconnect(all, leave);
      await expectChanges(all);
    });
  });
});

test("a contract of which only the page fails is read by its id", async () => {
  const all = await seeded({ contracts: 5, linesEach: 1, renewals: 1 });
  breakContract(all, "SubscriptionContract.billingAttempts");
  expect(await all.load()).toMatchObject({ subscriptions: 5, skipped: 0 });
  expect(await mirrored(all)).toHaveLength(5);
});

test("many bad objects among many are found with few queries", async () => {
  const all = await seeded({ contracts: 250, linesEach: 1, renewals: 0 });
  const bad = all.remote.ids("contract").filter((_, index) => index % 50 === 25);
  for (const id of bad) all.remote.breakField(id, "SubscriptionContract.status");
  expect(await all.load()).toMatchObject({ subscriptions: 245, skipped: 5 });
  expect((await all.inbox()).map(({ subject }) => subject).toSorted()).toEqual(bad.toSorted());
  expect(all.operations().filter((name) => name.startsWith("AllContracts")).length).toBeLessThan(80);
});

test("a field that fails for all contracts ends the load, and fills no inbox", async () => {
  const all = await seeded({ contracts: 40, linesEach: 1 });
  for (const id of all.remote.ids("contract")) all.remote.breakField(id, "SubscriptionContract.status");
  await expect(all.load()).rejects.toThrow("Internal error");
  expect((await all.inbox()).length).toBeLessThan(11);
});

describe("a refused field", () => {
  test("of a line of another app's order hides no order and no contract", async () => {
    const all = await seeded({ contracts: 5, linesEach: 1, renewals: 1 });
    const orders = all.remote.ids("contract").map((id) => all.remote.originOrder(id) ?? "");
    all.remote.breakField(orders[3] ?? "", "LineItem.contract", "ACCESS_DENIED");
    expect(await all.load({ pages: true })).toMatchObject({ subscriptions: 5, orders: 10, skipped: 0 });
    expect(all.logged("has no access to a field")).toHaveLength(1);
    const totals = async () => (await all.shop.all("orders")).map(({ totalCents }) => totalCents);
    expect(await totals()).not.toContain(0);
    all.remote.updateOrder(orders[3] ?? "", { lines: [{ title: "Tea", price: "3.00" }] });
    const other = all.remote.placeOrder();
    all.remote.breakField(other, "LineItem.contract", "ACCESS_DENIED");
    await all.deliverAll();
    expect(await totals()).toContain(300);
    expect(await all.inbox()).toEqual([]);
  });

  test.each(["LineItem.quantity", "Order.createdAt"])("%s counts the order as one that is not shown", async (field) => {
    const all = await seeded({ contracts: 5, linesEach: 1, renewals: 1 });
    const order = all.remote.originOrder(all.remote.ids("contract")[3] ?? "") ?? "";
    all.remote.breakField(order, field, "ACCESS_DENIED");
    expect(await all.load({ pages: true })).toMatchObject({ subscriptions: 5, orders: 9, skipped: 0 });
  });

  test("of a contract leaves out this contract alone", async () => {
    const all = await seeded({ contracts: 20, linesEach: 1, renewals: 1 });
    const bad = breakContract(all, "SubscriptionContract.customer", "ACCESS_DENIED");
    expect(await all.load()).toMatchObject({ subscriptions: 19, skipped: 1 });
    expect(await all.inbox()).toMatchObject([{ subject: bad }]);
    expect(all.platform.bucket(DOMAIN).spent).toBeLessThan(1_000);
  });
});

describe("a query that costs more than the platform allows", () => {
  test("is asked for smaller pages, and the size is kept for the shop", async () => {
    const all = await connected({}, { maxQueryCost: 60 });
    all.remote.seed({ contracts: 60, linesEach: 1, renewals: 2 });
    all.test.clock.ms += HOUR_MS;
    expect(await all.load()).toMatchObject({ customers: 60, subscriptions: 60, orders: 180, skipped: 0 });
    const refused = () => all.platform.requests.filter(({ outcome }) => outcome === "too costly").length;
    const before = refused();
    expect(before).toBeGreaterThan(0);
    expect(await all.load()).toMatchObject({ subscriptions: 60, changed: 0 });
    expect(refused()).toBe(before);
  });

  test("ends the load if even one object costs too much", async () => {
    const all = await connected({}, { maxQueryCost: 20 });
    all.remote.seed({ contracts: 3 });
    await expect(all.load()).rejects.toThrow("exceeds the single query max cost limit");
  });
});
