import { describe, expect, test } from "bun:test";
import { answerWith, connected, DOMAIN, HOUR_MS, LINE, seeded, TRIES, withContract } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import { isLookupOf } from "../../support/platform/faults.ts";
import { pageOfNodes } from "../../support/platform-nodes.ts";

describe("a load of a whole shop", () => {
  test("brings customers, contracts and orders into the mirror, and queues nothing", async () => {
    const all = await connected();
    await all.queueAllEvents();
    const customer = all.remote.createCustomer({
      email: "ada@example.com",
      firstName: "Ada",
      lastName: "Lovelace",
      marketing: "subscribed",
    });
    const contract = all.createContract({ customer });
    all.remote.failAttempt(all.remote.startAttempt(contract, 1), "CARD_DECLINED");
    const paid = all.remote.succeedAttempt(all.remote.startAttempt(contract, 1), {
      discounts: [
        { title: "Loyalty credit", amount: "3.00" },
        { title: "WELCOME", amount: "2.00", kind: "code" },
      ],
    });
    all.test.clock.ms += 60_000;
    expect(await all.load()).toMatchObject({ customers: 1, subscriptions: 1, orders: 2, events: 0 });
    const names = { email: "ada@example.com", firstName: "Ada", lastName: "Lovelace" };
    expect(await all.shop.all("customers")).toMatchObject([
      { shopifyId: customer, ...names, marketingConsent: true, subscriptionCount: 1 },
    ]);
    const billing = { status: "ACTIVE", interval: "MONTH", intervalCount: 1, cyclesCompleted: 1 };
    expect(await all.shop.all("subscriptions")).toMatchObject([
      { shopifyId: contract, ...billing, lines: [{ title: "House blend", quantity: 2, unitPriceCents: 1250 }] },
    ]);
    const orders = (await all.shop.all("orders")).toSorted(
      (a, b) => Number(a["cycleNumber"]) - Number(b["cycleNumber"]),
    );
    const checkout = {
      source: "checkout",
      cycleNumber: 0,
      status: "PAID",
      shopifyId: all.remote.originOrder(contract),
    };
    const renewal = { source: "recurring", cycleNumber: 1, status: "RECOVERED", shopifyId: paid };
    expect(orders).toMatchObject([
      { ...checkout, subtotalCents: 2500, totalCents: 2500 },
      { ...renewal, subtotalCents: 2500, discountCents: 200, creditsCents: 300, totalCents: 2000 },
    ]);
    expect(await all.test.app.store.deliveries.list(all.shop.shop.id, { limit: 1 })).toEqual([]);
  });

  test("reads every page of customers, contracts, lines, cycles, attempts and orders", async () => {
    const all = await connected();
    all.remote.seed({ contracts: 40, linesEach: 2, renewals: 14 });
    const manyLines = all.createContract({ lines: Array.from({ length: 120 }, () => LINE) });
    const manyAttempts = all.createContract({ originOrder: false });
    for (let n = 0; n < 8; n += 1) all.remote.failAttempt(all.remote.startAttempt(manyAttempts, 1));
    all.test.clock.ms += HOUR_MS;
    const orderCount = 40 * 15 + 2;
    expect(await all.load()).toMatchObject({ customers: 42, subscriptions: 42, orders: orderCount });
    const orders = await all.shop.all("orders");
    expect(orders).toHaveLength(orderCount);
    const subscriptions = await all.shop.all("subscriptions");
    const mirrored = subscriptions.find(({ shopifyId }) => shopifyId === manyLines);
    expect(mirrored?.["lines"]).toHaveLength(120);
    const checkout = orders.find(({ contractId }) => contractId === mirrored?.["id"]);
    expect(checkout).toMatchObject({ subtotalCents: 120 * 2500 });
    // The retry plan allows four attempts. The order is UNCOLLECTIBLE only if the load read more than the first page of
    // its attempts.
    const declined = subscriptions.find(({ shopifyId }) => shopifyId === manyAttempts);
    expect(orders.find(({ contractId }) => contractId === declined?.["id"])).toMatchObject({ status: "UNCOLLECTIBLE" });
    expect(all.platform.throttled).toBe(0);
  });

  test.each([
    [2, 2.9],
    [20, 4],
  ])("of contracts that were charged %p times costs less than %p points for each", async (renewals, points) => {
    const all = await seeded({ contracts: 250, linesEach: 1, renewals });
    const before = all.platform.bucket(DOMAIN).spent;
    expect(await all.load()).toMatchObject({ orders: 250 * (1 + renewals) });
    expect((all.platform.bucket(DOMAIN).spent - before) / 250).toBeLessThan(points);
    // Each contract needs two cycles, and a query reads 200.
    expect(all.operations().filter((name) => name.startsWith("CycleLookup"))).toHaveLength(3);
  });

  test("reads the cycles of one contract alone if the platform refuses a query for all of a page", async () => {
    const all = await seeded({ contracts: 20, linesEach: 1, renewals: 2 });
    const [, , , bad = ""] = all.remote.ids("contract");
    const body = JSON.stringify({ errors: [{ message: "no such cycle" }] });
    all.platform.fault = (info) => (isLookupOf(bad, info) ? { status: 200, body } : undefined);
    expect(await all.load()).toMatchObject({ subscriptions: 20, orders: 60, skipped: 0 });
    expect(all.operations().filter((name) => name === "BillingCycles")).toHaveLength(1);
  });

  test("changes nothing the second time, and reads no charged order again", async () => {
    const { all, contract } = await withContract();
    all.remote.failAttempt(all.remote.startAttempt(contract, 1));
    all.remote.skipCycle(contract, 2);
    all.remote.seed({ contracts: 5, renewals: 2 });
    all.test.clock.ms += HOUR_MS;
    expect((await all.load()).changed).toBeGreaterThan(20);
    const begun = all.platform.requests.length;
    expect(await all.load()).toMatchObject({ changed: 0 });
    expect(all.operations(begun)).not.toContain("Nodes");
  });

  test("continues at its last page after an interruption, with the same result", async () => {
    const all = await connected();
    const { syncs } = all.test.app.store;
    all.remote.seed({ contracts: 26, renewals: 1 });
    all.remote.maxPageRows = 25;
    all.test.clock.ms += HOUR_MS;
    all.platform.fault = ({ operation, n }) => (operation === "AllContracts" && n > 1 ? { status: 404 } : undefined);
    await expect(all.load()).rejects.toThrow("HTTP 404");
    expect(await all.shop.all("subscriptions")).toHaveLength(25);
    expect(await syncs.lastComplete(all.shop.shop.id, "full")).toBeUndefined();
    all.platform.fault = () => undefined;
    const begun = all.platform.requests.length;
    expect(await all.load()).toMatchObject({ customers: 26, subscriptions: 26 });
    expect(all.operations(begun)).not.toContain("AllCustomers");
    expect(all.operations(begun).filter((operation) => operation === "AllContracts")).toHaveLength(1);
    expect(await all.shop.all("subscriptions")).toHaveLength(26);
    // The stored time is the start of the run, not the time when the run continued.
    expect(await syncs.lastComplete(all.shop.shop.id, "full")).toMatchObject({ startedAt: all.test.clock.ms });
    expect(await syncs.unfinished(all.shop.shop.id, "full")).toBeUndefined();
  });

  test("queues events of past changes only with `events`", async () => {
    const all = await connected();
    await all.queueAllEvents();
    all.remote.seed({ contracts: 3, renewals: 1 });
    expect(await all.load()).toMatchObject({ events: 0 });
    const other = await connected();
    await other.queueAllEvents();
    other.remote.seed({ contracts: 3, renewals: 1 });
    other.test.clock.ms += HOUR_MS;
    expect((await other.load({ events: true })).events).toBe(3 + 3 + 3);
  });

  test("queues events of changes while it runs", async () => {
    const all = await connected();
    await all.queueAllEvents();
    const contract = all.createContract();
    all.test.clock.ms += HOUR_MS;
    all.platform.fault = ({ operation, n }) => {
      if (operation === "NewestContract" && n === 1) all.remote.failAttempt(all.remote.startAttempt(contract, 1));
      return undefined;
    };
    expect((await all.load()).events).toBeGreaterThan(0);
    const topics = (await all.test.app.store.deliveries.list(all.shop.shop.id, { limit: 9 })).map(({ topic }) => topic);
    expect(topics).toContain("order.failed");
  });
});

test("a page that is older than the reading for a platform webhook hides no change", async () => {
  const all = await connected();
  // The contract is on the third page. The load works on the first two pages at the same time.
  all.remote.seed({ contracts: 50, linesEach: 1 });
  all.remote.maxPageRows = 25;
  const contract = all.createContract();
  all.remote.failAttempt(all.remote.startAttempt(contract, 1));
  all.remote.outgoing.length = 0;
  all.test.clock.ms += HOUR_MS;
  const first = Promise.withResolvers<void>();
  all.platform.fault = ({ operation, n }) =>
    operation.startsWith("CycleLookup") && n === 1 ? { until: first.promise } : undefined;
  const requestedAt = all.test.clock.ms;
  const loading = all.load();
  await eventually(() => all.operations().filter((name) => name === "AllContracts").length === 3);
  await eventually(() => all.operations().some((name) => name.startsWith("CycleLookup")));
  all.test.clock.ms += HOUR_MS;
  all.remote.cancel(contract);
  await all.deliverAll();
  first.resolve();
  await loading;
  const ended = { cycleNumber: 1, status: "UNCOLLECTIBLE" };
  expect(await all.shop.all("orders")).toContainEqual(expect.objectContaining(ended));
  // The stored reading has the time of the page's request, so a later change is read again.
  const reads = await all.test.app.store.mirror.contractReads(all.shop.shop, [contract]);
  expect(reads.get(contract)).toMatchObject({ beganAt: requestedAt });
});

describe("two pages of contracts are worked on at a time", () => {
  /**
   * A shop with four pages of contracts. The first page shows the client the cost of a look-up. Until then, only one
   * look-up runs at a time.
   */
  async function fourPages() {
    const all = await seeded({ contracts: 76 });
    all.remote.maxPageRows = 25;
    const [onSecond = "", onThird = ""] = [40, 60].map((index) => all.remote.ids("contract")[index]);
    const unfinished = () => all.test.app.store.syncs.unfinished(all.shop.shop.id, "full");
    return { ...all, onSecond, onThird, unfinished };
  }

  /**
   * Starts a load. Its second page waits while the third page is written. Then the second page fails if `fails` is
   * true.
   */
  async function withSlowPage({ fails }: { fails: boolean }) {
    const all = await fourPages();
    const slow = Promise.withResolvers<void>();
    const answer = fails ? { until: slow.promise, status: 503 } : { until: slow.promise };
    all.platform.fault = (info) => (isLookupOf(all.onSecond, info) ? answer : undefined);
    const loading = all.load();
    await eventually(async () => (await all.shop.all("subscriptions")).length === 50);
    expect(await all.unfinished()).toMatchObject({ cursor: expect.any(String), counts: { subscriptions: 25 } });
    return { ...all, slow, loading };
  }

  test("and are noted as read in their order", async () => {
    const all = await withSlowPage({ fails: false });
    expect(all.operations().filter((name) => name === "AllContracts")).toHaveLength(4);
    all.slow.resolve();
    expect(await all.loading).toMatchObject({ subscriptions: 76 });
  });

  test("and the later one is read again if the earlier one fails", async () => {
    const all = await withSlowPage({ fails: true });
    all.slow.resolve();
    await expect(all.loading).rejects.toThrow("HTTP 503");
    expect(await all.unfinished()).toMatchObject({ counts: { subscriptions: 25 } });
    all.platform.fault = () => undefined;
    expect(await all.load()).toMatchObject({ subscriptions: 76 });
    expect(await all.shop.all("subscriptions")).toHaveLength(76);
  });

  test("and the earlier one is noted if the later one fails", async () => {
    const all = await fourPages();
    let tries = 0;
    all.platform.fault = (info) => {
      if (isLookupOf(all.onThird, info)) {
        tries += 1;
        return { status: 503 };
      }
      return isLookupOf(all.onSecond, info) ? { until: eventually(() => tries === TRIES) } : undefined;
    };
    await expect(all.load()).rejects.toThrow("HTTP 503");
    expect(await all.unfinished()).toMatchObject({ counts: { subscriptions: 50 } });
    all.platform.fault = () => undefined;
    expect(await all.load()).toMatchObject({ subscriptions: 76 });
  });
});

describe("an impossible page of the platform", () => {
  test("with a null node is read", async () => {
    const all = await connected();
    all.replaceAnswers("AllCustomers", answerWith({ customers: pageOfNodes([null]) }));
    expect(await all.load()).toMatchObject({ customers: 0 });
  });

  test.each([null, {}, { nodes: null }, { nodes: [] }])("without its list, like %j, is refused", async (customers) => {
    const all = await connected();
    all.replaceAnswers("AllCustomers", answerWith({ customers }));
    await expect(all.load()).rejects.toThrow("the platform's answer has no list of customers");
  });

  test("whose cursors repeat ends the load", async () => {
    const all = await connected();
    all.platform.fault = ({ operation, n }) =>
      operation === "AllCustomers" ? answerWith({ customers: pageOfNodes([], n % 2 === 0 ? "a" : "b") }) : undefined;
    await expect(all.load()).rejects.toThrow("the platform repeats the same pages");
  });

  test("after a cursor that the platform no longer knows starts the stage again", async () => {
    const all = await connected();
    all.remote.seed({ contracts: 3, renewals: 0 });
    const run = { startedAt: 0, events: false, stage: "customers" as const, cursor: "no cursor of the platform" };
    const counts = { customers: 250, subscriptions: 0, orders: 0, changed: 7, events: 0, skipped: 1 };
    await all.test.app.store.syncs.save(all.shop.shop.id, "full", { ...run, counts });
    all.test.clock.ms += HOUR_MS;
    expect(await all.load()).toMatchObject({ customers: 3, subscriptions: 3, skipped: 0 });
    all.platform.invalid.length = 0;
  });
});
