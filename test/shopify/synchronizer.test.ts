import { describe, expect, test } from "bun:test";
import { TOPIC_NAMES } from "../../src/domain/event.ts";
import { type ConnectionResult, connected, DOMAIN } from "../support/connected.ts";
import { eventually } from "../support/eventually.ts";

const LINE = { title: "House blend", price: "12.50", quantity: 2, variant: "gid://shopify/ProductVariant/11", product: "gid://shopify/Product/12" };
const HOUR = 3_600_000;

function full({ test, shop }: ConnectionResult, events = false) {
  return test.app.platform.synchronizer.load(shop.shop, { events });
}

function changes({ test, shop }: ConnectionResult) {
  return test.app.platform.synchronizer.reconcile(shop.shop, undefined);
}

async function sendEverything({ test, shop }: ConnectionResult): Promise<void> {
  await test.app.store.webhooks.set(shop.shop.id, { url: "https://hooks.example.com/", topics: TOPIC_NAMES }, test.clock.now());
}

describe("a first sync", () => {
  test("reads every page: customers, contracts, lines, cycles, orders", async () => {
    const all = await connected();
    all.remote.seed({ contracts: 40, linesEach: 2, renewals: 14 });
    const many = all.remote.createContract({ customer: all.remote.createCustomer({ email: "a@example.com" }), lines: Array.from({ length: 120 }, () => LINE) });
    all.test.clock.ms += HOUR;
    expect(await full(all)).toMatchObject({ customers: 41, subscriptions: 41, orders: 40 * 15 + 1 });
    expect(await all.shop.all("orders")).toHaveLength(40 * 15 + 1);
    const contract = (await all.shop.all("subscriptions")).find(({ shopifyId }) => shopifyId === many);
    expect(contract?.["lines"]).toHaveLength(120);
    const checkout = (await all.shop.all("orders")).find(({ contractId }) => contractId === contract?.["id"]);
    expect(checkout).toMatchObject({ subtotalCents: 120 * 2500 });
    expect(all.platform.throttled).toBe(0);
  });

  test("of what is loaded already changes nothing", async () => {
    const all = await connected();
    const contract = all.remote.createContract({ customer: all.remote.createCustomer({ email: "a@example.com" }), lines: [LINE] });
    all.remote.failAttempt(all.remote.startAttempt(contract, 1));
    all.remote.skipCycle(contract, 2);
    all.remote.seed({ contracts: 5, renewals: 2 });
    all.test.clock.ms += HOUR;
    expect((await full(all)).changed).toBeGreaterThan(20);
    expect(await full(all)).toMatchObject({ changed: 0 });
  });

  test("that is cut off goes on at the page that it had reached, and ends the same", async () => {
    const all = await connected();
    all.remote.seed({ contracts: 60, renewals: 1 });
    all.test.clock.ms += HOUR;
    all.platform.fault = ({ operation, n }) => (operation === "AllContracts" && n > 2 ? { status: 404 } : undefined);
    await expect(full(all)).rejects.toThrow("HTTP 404");
    const reached = (await all.shop.all("subscriptions")).length;
    expect(reached).toBeGreaterThan(0);
    expect(reached).toBeLessThan(60);
    expect(await all.test.app.store.syncs.lastComplete(all.shop.shop.id, "full")).toBeUndefined();
    all.platform.fault = () => undefined;
    const before = all.platform.requests.length;
    expect(await full(all)).toMatchObject({ customers: 60, subscriptions: 60 });
    const after = all.platform.requests.slice(before).map(({ operation }) => operation);
    expect(after).not.toContain("AllCustomers");
    expect(after.filter((operation) => operation === "AllContracts").length).toBeLessThan(4);
    expect(await all.shop.all("subscriptions")).toHaveLength(60);
  });

  test("tells of nothing unless asked, but of what began after it did", async () => {
    const all = await connected();
    await sendEverything(all);
    all.remote.seed({ contracts: 3, renewals: 1 });
    expect(await full(all)).toMatchObject({ events: 0 });
    const other = await connected();
    await sendEverything(other);
    other.remote.seed({ contracts: 3, renewals: 1 });
    other.test.clock.ms += HOUR;
    expect((await full(other, true)).events).toBe(3 + 3 + 3);
  });

  test("leaves out what makes no sense, says so, and loads everything else", async () => {
    const all = await connected();
    all.remote.seed({ contracts: 3, renewals: 1 });
    all.remote.createContract({ customer: all.remote.createCustomer({ email: "a@example.com" }), lines: [LINE], interval: "DAY", intervalCount: 100_001 });
    all.test.clock.ms += HOUR;
    expect(await full(all)).toMatchObject({ subscriptions: 3, skipped: 1 });
    expect(all.test.logged.filter((line) => line.includes("cannot be mirrored")).join("")).toContain("intervalCount");
    // It waits with all else that can't be processed, where somebody sees it.
    expect(await all.test.app.store.inbox.list(all.shop.shop.id, { limit: 10 })).toMatchObject([{ topic: "subscription_contracts/update", status: "waiting" }]);
    expect(await all.shop.all("subscriptions")).toHaveLength(3);
  });

  test("goes on without what the app lacks a grant for, and does not take it for empty", async () => {
    const all = await connected();
    all.remote.scopes = ["read_own_subscription_contracts", "read_customers", "read_orders"];
    const customer = all.remote.createCustomer({ email: "a@example.com", firstName: "Ada" });
    all.remote.createContract({ customer, lines: [LINE] });
    await all.deliverAll();
    // The products of an order's lines can't be seen: its contract says what was ordered.
    expect(await all.shop.all("orders")).toMatchObject([{ status: "PAID", subtotalCents: 2500, lines: [{ title: "House blend", productId: LINE.product }] }]);
    expect(all.test.logged.filter((line) => line.includes("has no access to a field"))).toHaveLength(1);
    // Nor can people, from here on.
    all.remote.scopes = ["read_own_subscription_contracts", "read_orders", "read_products"];
    all.test.clock.ms += HOUR;
    await expect(full(all)).rejects.toThrow("Access denied");
    expect(await all.shop.all("customers")).toMatchObject([{ email: "a@example.com", firstName: "Ada" }]);
  });

  test("leaves names and addresses as they are where the platform keeps them back", async () => {
    const all = await connected();
    const customer = all.remote.createCustomer({ email: "a@example.com", firstName: "Ada", lastName: "Lovelace" });
    all.remote.setConsent(customer, "subscribed");
    await all.deliverAll();
    const node = { id: customer, firstName: null, lastName: "Byron", updatedAt: "2026-06-01T00:00:00Z", defaultEmailAddress: null };
    // A field that can't be null takes what is around it along.
    const denied = [["firstName"], ["defaultEmailAddress", "emailAddress"]].map((field) => ({
      message: "Access denied",
      path: ["customers", "nodes", 0, ...field],
      extensions: { code: "ACCESS_DENIED" },
    }));
    const body = JSON.stringify({ data: { customers: { pageInfo: { hasNextPage: false, endCursor: null }, nodes: [node] } }, errors: denied });
    all.platform.fault = ({ operation }) => (operation === "AllCustomers" ? { status: 200, body } : undefined);
    all.test.clock.ms += 120 * 24 * HOUR;
    await full(all);
    expect(await all.shop.all("customers")).toMatchObject([{ email: "a@example.com", firstName: "Ada", lastName: "Byron", marketingConsent: true }]);
  });

  test("counts a charge whose order can't be seen", async () => {
    const all = await connected();
    const contract = all.remote.createContract({ customer: all.remote.createCustomer({ email: "a@example.com" }), lines: [LINE] });
    const order = all.remote.succeedAttempt(all.remote.startAttempt(contract, 1));
    all.platform.fault = ({ operation }) => (operation === "OrdersById" ? { status: 200, body: '{"data":{"nodes":[null,null]}}' } : undefined);
    all.test.clock.ms += 2 * HOUR;
    await full(all);
    expect(await all.shop.all("subscriptions")).toMatchObject([{ cyclesCompleted: 1 }]);
    expect(await all.shop.all("orders")).toMatchObject([{ status: "PAID", shopifyId: order, totalCents: 2500 }]);
  });

  test("cuts what a shop let grow too long, and keeps the rest", async () => {
    const all = await connected();
    all.remote.createContract({ customer: all.remote.createCustomer({ email: "a@example.com" }), lines: [{ ...LINE, title: "x".repeat(2000) }] });
    all.test.clock.ms += HOUR;
    await full(all);
    expect(await all.shop.all("subscriptions")).toMatchObject([{ lines: [{ title: "x".repeat(1024) }] }]);
  });
});

describe("news", () => {
  test("is what happened since the shop was connected, whatever brings it", async () => {
    const all = await connected();
    await sendEverything(all);
    all.test.clock.ms -= 90 * 24 * HOUR;
    const contract = all.remote.createContract({ customer: all.remote.createCustomer({ email: "a@example.com" }), lines: [LINE] });
    all.remote.failAttempt(all.remote.startAttempt(contract, 1));
    all.remote.succeedAttempt(all.remote.startAttempt(contract, 1));
    all.remote.outgoing.length = 0;
    all.test.clock.ms += 91 * 24 * HOUR;
    // Before the first sync.
    all.remote.pause(contract);
    await all.deliverAll();
    const topics = async () => (await all.test.app.store.deliveries.list(all.shop.shop.id, { limit: 100 })).map(({ topic }) => topic).toReversed();
    expect(await all.shop.all("orders")).toHaveLength(2);
    expect(await topics()).toEqual([]);
    all.remote.activate(contract);
    all.remote.failAttempt(all.remote.startAttempt(contract, 2));
    await all.deliverAll();
    expect((await topics()).toSorted()).toEqual(["order.failed", "subscription.updated"]);
  });

  test("that waits in the inbox is told of, though another sync of the shop comes first", async () => {
    const all = await connected();
    await sendEverything(all);
    const contract = all.remote.createContract({ customer: all.remote.createCustomer({ email: "a@example.com" }), lines: [LINE] });
    all.test.clock.ms += HOUR;
    await full(all);
    all.test.clock.ms += HOUR;
    all.remote.cancel(contract);
    all.platform.fault = () => ({ status: 503 });
    await all.deliverAll();
    all.platform.fault = () => undefined;
    all.test.clock.ms += 1_000;
    await full(all);
    const topics = (await all.test.app.store.deliveries.list(all.shop.shop.id, { limit: 100 })).map(({ topic }) => topic);
    expect(topics.toSorted()).toEqual(["subscription.cancelled", "subscription.updated"]);
  });
});

describe("a reconciling run", () => {
  test("with nothing changed costs one query of each kind", async () => {
    const all = await connected();
    all.remote.seed({ contracts: 20, renewals: 2 });
    all.test.clock.ms += HOUR;
    await full(all);
    all.test.clock.ms += HOUR;
    const before = all.platform.requests.length;
    expect(await changes(all)).toEqual({ customers: 0, subscriptions: 0, orders: 0, changed: 0, events: 0, skipped: 0 });
    expect(all.platform.requests.slice(before).map(({ operation }) => operation)).toEqual(["Customers", "Contracts", "Orders", "Attempts"]);
  });

  test("finds what no webhook told, and tells of it", async () => {
    const all = await connected();
    await sendEverything(all);
    const contract = all.remote.createContract({ customer: all.remote.createCustomer({ email: "a@example.com" }), lines: [LINE] });
    all.test.clock.ms += HOUR;
    await full(all);
    all.test.clock.ms += HOUR;
    all.remote.setNextBillingDate(contract, "2026-05-05T00:00:00Z");
    all.remote.failAttempt(all.remote.startAttempt(contract, 1));
    expect(await changes(all)).toMatchObject({ subscriptions: 1, events: 2 });
    expect(await all.shop.all("subscriptions")).toMatchObject([{ nextBillingDate: "2026-05-05T00:00:00.000Z" }]);
  });

  test("runs every hour by itself, and only over what was loaded whole; one that fails is made up for", async () => {
    const all = await connected();
    const { reconciler, store } = all.test.app;
    const last = () => store.syncs.lastComplete(all.shop.shop.id, "changes");
    const contract = all.remote.createContract({ customer: all.remote.createCustomer({ email: "a@example.com" }), lines: [LINE] });
    all.test.clock.ms += HOUR;
    await reconciler.runOnce();
    expect(await last()).toBeUndefined();
    await full(all);
    await reconciler.runOnce();
    expect(await last()).toBeUndefined();
    all.test.clock.ms += HOUR;
    all.remote.pause(contract);
    all.platform.fault = () => ({ status: 404 });
    await reconciler.runOnce();
    expect(await last()).toBeUndefined();
    all.test.clock.ms += 2 * HOUR;
    all.platform.fault = () => undefined;
    await reconciler.runOnce();
    expect(await last()).toMatchObject({ changed: 1 });
    expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "PAUSED" }]);
  });

  test("with a time given leaves no gap behind the hourly ones", async () => {
    const all = await connected();
    const contract = all.remote.createContract({ customer: all.remote.createCustomer({ email: "a@example.com" }), lines: [LINE] });
    all.test.clock.ms += HOUR;
    await full(all);
    all.test.clock.ms += 24 * HOUR;
    all.remote.cancel(contract);
    all.test.clock.ms += 24 * HOUR;
    await all.test.app.platform.synchronizer.reconcile(all.shop.shop, all.test.clock.ms - HOUR);
    expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "ACTIVE" }]);
    await changes(all);
    expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "CANCELLED" }]);
  });

  test("goes on after a failure of the database too", async () => {
    const all = await connected();
    const { reconciler, store } = all.test.app;
    all.test.clock.ms += HOUR;
    await full(all);
    all.test.clock.ms += HOUR;
    const { list } = store.connections;
    store.connections.list = () => Promise.reject(new Error("disk I/O error"));
    await reconciler.runOnce();
    store.connections.list = list;
    await reconciler.runOnce();
    expect(await store.syncs.lastComplete(all.shop.shop.id, "changes")).toBeDefined();
  });

  test("of a shop that was never loaded is refused", async () => {
    const all = await connected();
    await expect(changes(all)).rejects.toThrow(`${DOMAIN} was never loaded completely`);
  });
});

describe("workflow triggers", () => {
  test("are started once each, with the customer's number exact, and logged like webhooks", async () => {
    const all = await connected();
    const { store, sender } = all.test.app;
    await store.shops.set(DOMAIN, { triggers: ["subscription-created", "billing-attempt-failed", "streak-milestone-reached"] });
    const customer = all.remote.createCustomer({ email: "a@example.com" });
    const contract = all.remote.createContract({ customer, lines: [LINE] });
    await all.deliverAll();
    all.remote.failAttempt(all.remote.startAttempt(contract, 1), "EXPIRED_CARD");
    await all.deliverAll();
    await all.shop.intake({ type: "reward", id: "s1", source: "streak", customer, milestone: 5 });
    all.remote.cancel(contract);
    await all.deliverAll();
    const log = () => store.deliveries.list(all.shop.shop.id, { limit: 20, kind: "trigger" });
    sender.wake();
    await eventually(async () => (await log()).every(({ status }) => status === "delivered"));
    const number = customer.split("/").at(-1);
    expect(all.remote.workflows.map(({ handle }) => handle).toSorted()).toEqual(["billing-attempt-failed", "streak-milestone-reached", "subscription-created"]);
    expect(all.remote.workflows.every(({ raw }) => raw.includes(`"customer_id":${number},`))).toBe(true);
    expect(all.remote.workflows.find(({ handle }) => handle === "billing-attempt-failed")?.payload).toMatchObject({
      "Contract ID": contract,
      Interval: "1 month",
      "Decline reason": "expired_card",
      "Attempt count": 1,
    });
    expect(await log()).toMatchObject([{ lastStatusCode: 200 }, { lastStatusCode: 200 }, { lastStatusCode: 200 }]);
  });

  test("that the platform doesn't take are tried again, with its own words in the log", async () => {
    const all = await connected({}, { handles: [] });
    const { store, sender } = all.test.app;
    await store.shops.set(DOMAIN, { triggers: ["subscription-created"] });
    all.remote.createContract({ customer: all.remote.createCustomer({ email: "a@example.com" }), lines: [LINE] });
    await all.deliverAll();
    sender.wake();
    const log = () => store.deliveries.list(all.shop.shop.id, { limit: 20 });
    await eventually(async () => (await log())[0]?.status === "retrying");
    expect(await log()).toMatchObject([
      { kind: "trigger", attempts: 1, lastStatusCode: 200, error: expect.stringContaining("Invalid handle 'subscription-created'") },
    ]);
    all.platform.fault = () => ({ status: 500 });
    all.test.clock.ms += 120_000;
    sender.wake();
    await eventually(async () => (await log())[0]?.attempts === 2);
    expect(await log()).toMatchObject([{ lastStatusCode: 500, error: "The platform answered HTTP 500." }]);
  });
});
