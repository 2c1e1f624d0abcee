import { describe, expect, test } from "bun:test";
import { answerWith, connected, DOMAIN, HOUR_MS, seededAndLoaded, TRIES } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import { pageOfNodes } from "../../support/platform-nodes.ts";
import { loadedAnHourAgo } from "./loaded.ts";

const NOTHING = { customers: 0, subscriptions: 0, orders: 0, changed: 0, events: 0, skipped: 0 };

describe("reconciling", () => {
  test("costs one query of each kind if nothing changed", async () => {
    const all = await seededAndLoaded({ contracts: 20, renewals: 2 });
    const begun = all.platform.requests.length;
    expect(await all.reconcile()).toEqual(NOTHING);
    expect(all.operations(begun)).toEqual([
      "Installation",
      "Customers",
      "ChangedContracts",
      "ChangedOrders",
      "Attempts",
    ]);
  });

  test.each([false, true])(
    "finds the change of an order from before a second load; reconciled: %p",
    async (isReconciled) => {
      const all = await loadedAnHourAgo();
      if (isReconciled) await all.reconcile();
      all.test.clock.ms += HOUR_MS;
      all.remote.updateOrder(all.remote.originOrder(all.contract) ?? "", { lines: [{ title: "Tea", price: "3.00" }] });
      all.remote.outgoing.length = 0;
      all.test.clock.ms += HOUR_MS;
      await all.load();
      all.test.clock.ms += HOUR_MS;
      await all.reconcile();
      expect(await all.shop.all("orders")).toMatchObject([{ totalCents: 300 }]);
    },
  );

  test("ends if the platform no longer has a field, and puts no object into the inbox", async () => {
    const all = await loadedAnHourAgo();
    all.remote.pause(all.contract);
    all.remote.outgoing.length = 0;
    all.platform.removedFields = new Set(["SubscriptionContract.nextBillingDate"]);
    await expect(all.reconcile()).rejects.toThrow("no longer has SubscriptionContract.nextBillingDate");
    expect(await all.inbox()).toEqual([]);
    all.platform.removedFields = new Set();
    await all.reconcile();
    expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "PAUSED" }]);
  });

  test("finds a new plan, new scopes and a new currency without a webhook", async () => {
    const all = await loadedAnHourAgo();
    all.remote.setAppSubscription({ name: "Free", status: "ACTIVE" });
    all.remote.setCurrency("EUR");
    all.remote.setScopes([...all.remote.scopes, "read_all_orders"]);
    await all.reconcile();
    const { shops, connections } = all.test.app.store;
    expect(await shops.find(DOMAIN)).toMatchObject({ plan: "free", currency: "EUR" });
    expect((await connections.find(all.shop.shop.id))?.scopes).toContain("read_all_orders");
  });

  test("finds changes without a webhook, and queues their events", async () => {
    const all = await loadedAnHourAgo();
    all.remote.setNextBillingDate(all.contract, "2026-05-05T00:00:00Z");
    all.remote.failAttempt(all.remote.startAttempt(all.contract, 1));
    expect(await all.reconcile()).toMatchObject({ subscriptions: 1, events: 2 });
    expect(await all.shop.all("subscriptions")).toMatchObject([{ nextBillingDate: "2026-05-05T00:00:00.000Z" }]);
  });

  test("finds a change of a charged order", async () => {
    const all = await loadedAnHourAgo();
    const order = all.remote.originOrder(all.contract) ?? "";
    all.remote.updateOrder(order, { lines: [{ title: "Tea", price: "3.00" }] });
    const begun = all.platform.requests.length;
    expect(await all.reconcile()).toMatchObject({ subscriptions: 0, changed: 1 });
    expect(await all.shop.all("orders")).toMatchObject([{ shopifyId: order, totalCents: 300 }]);
    expect(all.operations(begun)).toContain("Nodes");
  });

  test("reads a contract once, however many of its attempts are new", async () => {
    const all = await loadedAnHourAgo();
    for (let n = 0; n < 3; n += 1) all.remote.failAttempt(all.remote.startAttempt(all.contract, 1));
    all.test.clock.ms += HOUR_MS;
    const begun = all.platform.requests.length;
    await all.reconcile();
    expect(all.operations(begun).filter((name) => name === "BillingCycles")).toHaveLength(1);
  });

  test("finds an attempt of a contract that the platform does not show as changed", async () => {
    const all = await loadedAnHourAgo();
    all.remote.startAttempt(all.contract, 1);
    const begun = all.platform.requests.length;
    expect(await all.reconcile()).toMatchObject({ subscriptions: 0, changed: 1 });
    expect(all.operations(begun)).toContain("BillingCycles");
    expect(await all.shop.all("orders")).toContainEqual(expect.objectContaining({ cycleNumber: 1, status: "PENDING" }));
  });

  test("finds an attempt that ended after a later one had begun", async () => {
    const all = await loadedAnHourAgo();
    const challenged = all.remote.startAttempt(all.contract, 1);
    all.test.clock.ms += 60_000;
    all.remote.failAttempt(all.remote.startAttempt(all.contract, 1));
    all.test.clock.ms += 60_000;
    await all.deliverAll();
    all.test.clock.ms += 60_000;
    // The last webhook is lost.
    all.platform.fault = ({ operation }) => {
      if (operation !== "ChangedContracts") return undefined;
      // The platform does not show the contract as changed.
      return answerWith({ subscriptionContracts: pageOfNodes([]) });
    };
    all.remote.failAttempt(challenged);
    all.remote.outgoing.length = 0;
    all.test.clock.ms += 60_000;
    expect(await all.reconcile()).toMatchObject({ changed: 2, events: 1 });
  });

  test("puts a contract that cannot be mirrored into the inbox", async () => {
    const all = await loadedAnHourAgo();
    all.remote.startAttempt(all.contract, 1);
    all.replaceAnswers("Nodes", { status: 400 });
    expect(await all.reconcile()).toEqual({ ...NOTHING, skipped: 1 });
    const [waiting] = await all.inbox();
    expect(waiting).toMatchObject({ subject: all.contract, status: "waiting" });
  });

  test.each([
    ["a contract", "SubscriptionContract"],
    ["an order", "Order"],
  ] as const)("puts %s that the platform refuses into the inbox, and reads all others", async (_, object) => {
    const all = await seededAndLoaded({ contracts: 3, renewals: 1 });
    const isContract = object === "SubscriptionContract";
    const changed = isContract ? all.remote.ids("contract") : [1, 2, 3].map(() => all.remote.placeOrder());
    if (isContract) for (const gid of changed) all.remote.pause(gid);
    const [bad = ""] = changed;
    const body = JSON.stringify({ errors: [{ message: "invalid id" }] });
    all.platform.fault = ({ operation, variables }) =>
      operation === "Nodes" && (variables["ids"] as string[]).includes(bad) ? { status: 200, body } : undefined;
    expect(await all.reconcile()).toMatchObject({ changed: isContract ? 2 : 0, skipped: 1 });
    all.platform.fault = () => undefined;
    const [waiting] = await all.inbox();
    expect(waiting).toMatchObject({ subject: bad, status: "waiting" });
    all.test.app.processor.wake();
    await all.processed();
    expect(await all.inbox()).toEqual([]);
  });

  test("reads the pages from the first one on if the platform does not know where the last run stopped", async () => {
    const all = await seededAndLoaded({ contracts: 26, renewals: 0 });
    all.remote.maxPageRows = 25;
    for (const gid of all.remote.ids("contract")) all.remote.pause(gid);
    all.platform.fault = ({ operation, n }) =>
      operation === "ChangedContracts" && n > 1 ? { status: 503 } : undefined;
    await expect(all.reconcile()).rejects.toThrow("HTTP 503");
    const cursor = (await all.test.app.store.syncs.unfinished(all.shop.shop.id, "changes"))?.cursor;
    expect(cursor).toBeString();
    const body = JSON.stringify({ errors: [{ message: "invalid cursor" }] });
    // Only the first request with this cursor is refused: a new run gets the same cursor again.
    let refusals = 0;
    all.platform.fault = ({ operation, variables }) => {
      const isRefused = operation === "ChangedContracts" && variables["after"] === cursor && refusals === 0;
      if (isRefused) refusals += 1;
      return isRefused ? { status: 200, body } : undefined;
    };
    expect(await all.reconcile()).toMatchObject({ subscriptions: 26 });
    const statuses = (await all.shop.all("subscriptions")).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set(["PAUSED"]));
    expect(refusals).toBe(1);
  });

  test("that fails for one contract ends after the readings of all others", async () => {
    const all = await seededAndLoaded({ contracts: 2, renewals: 1 });
    const [failing, slow] = all.remote.ids("contract");
    for (const gid of all.remote.ids("contract")) all.remote.pause(gid);
    await all.reconcile();
    all.test.clock.ms += HOUR_MS;
    for (const gid of all.remote.ids("contract")) all.remote.activate(gid);
    let tries = 0;
    all.platform.fault = ({ operation, variables }) => {
      if (operation !== "BillingCycles") return undefined;
      if (variables["id"] !== failing) return { until: eventually(() => tries === TRIES) };
      tries += 1;
      return { status: 503 };
    };
    await expect(all.reconcile()).rejects.toThrow("HTTP 503");
    const mirrored = (await all.shop.all("subscriptions")).find(({ shopifyId }) => shopifyId === slow);
    expect(mirrored).toMatchObject({ status: "ACTIVE" });
  });

  test("fails if the platform is down, so that the next run begins at the same time", async () => {
    const all = await loadedAnHourAgo();
    all.remote.startAttempt(all.contract, 1);
    all.replaceAnswers("Nodes", { status: 503 });
    await expect(all.reconcile()).rejects.toThrow("HTTP 503");
    expect(await all.inbox()).toEqual([]);
    all.platform.fault = () => undefined;
    expect(await all.reconcile()).toMatchObject({ changed: 1, skipped: 0 });
  });
});

describe("events", () => {
  test("are queued for what happened since the shop was connected, whatever the source", async () => {
    const all = await connected();
    await all.queueAllEvents();
    all.test.clock.ms -= 90 * 24 * HOUR_MS;
    const contract = all.createContract();
    all.remote.failAttempt(all.remote.startAttempt(contract, 1));
    all.remote.succeedAttempt(all.remote.startAttempt(contract, 1));
    all.remote.outgoing.length = 0;
    all.test.clock.ms += 91 * 24 * HOUR_MS;
    // A platform webhook arrives before the load.
    all.remote.pause(contract);
    await all.deliverAll();
    expect(await all.shop.all("orders")).toHaveLength(2);
    expect(await all.queuedTopics()).toEqual([]);
    all.remote.activate(contract);
    all.remote.failAttempt(all.remote.startAttempt(contract, 2));
    await all.deliverAll();
    expect((await all.queuedTopics()).toSorted()).toEqual(["order.failed", "subscription.updated"]);
  });

  test("are queued for a platform webhook that waits in the inbox, even if a load reads its change first", async () => {
    const all = await loadedAnHourAgo();
    all.remote.cancel(all.contract);
    all.platform.fault = () => ({ status: 503 });
    await all.deliverAll();
    all.platform.fault = () => undefined;
    all.test.clock.ms += 1_000;
    await all.load();
    expect((await all.queuedTopics()).toSorted()).toEqual(["subscription.cancelled", "subscription.updated"]);
  });
});
