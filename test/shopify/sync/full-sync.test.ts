import { describe, expect, test } from "bun:test";
import { progressText, type SyncProgress } from "../../../src/domain/platform/load-progress.ts";
import { answerWith, connected, DOMAIN, HOUR_MS, LINE, seeded, withContract } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
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
  });

  test("reads the cycles of one contract alone if the platform refuses a query for all of a page", async () => {
    const all = await seeded({ contracts: 20, linesEach: 1, renewals: 2 });
    const [, , , bad] = all.remote.ids("contract");
    const body = JSON.stringify({ errors: [{ message: "no such cycle" }] });
    all.platform.fault = ({ operation, variables }) =>
      operation.startsWith("CycleLookup") && Object.values(variables).includes(bad) ? { status: 200, body } : undefined;
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
    all.remote.seed({ contracts: 260, renewals: 1 });
    all.test.clock.ms += HOUR_MS;
    all.platform.fault = ({ operation, n }) => (operation === "AllContracts" && n > 1 ? { status: 404 } : undefined);
    await expect(all.load()).rejects.toThrow("HTTP 404");
    const loaded = (await all.shop.all("subscriptions")).length;
    expect(loaded).toBeGreaterThan(0);
    expect(loaded).toBeLessThan(260);
    expect(await syncs.lastComplete(all.shop.shop.id, "full")).toBeUndefined();
    all.platform.fault = () => undefined;
    const begun = all.platform.requests.length;
    expect(await all.load()).toMatchObject({ customers: 260, subscriptions: 260 });
    expect(all.operations(begun)).not.toContain("AllCustomers");
    expect(all.operations(begun).filter((operation) => operation === "AllContracts")).toHaveLength(1);
    expect(await all.shop.all("subscriptions")).toHaveLength(260);
    // The stored time is the start of the run, not the time when the run continued.
    expect(await syncs.lastComplete(all.shop.shop.id, "full")).toMatchObject({ startedAt: all.test.clock.ms });
    expect(await syncs.unfinished(all.shop.shop.id, "full")).toBeUndefined();
  });

  test("reports its progress", async () => {
    const all = await seeded({ contracts: 600 });
    const progress: SyncProgress[] = [];
    await all.load({}, (each) => progress.push(each));
    const doneIn = (stage: string) => progress.filter((each) => each.stage === stage).map(({ done }) => done);
    expect(doneIn("customers")).toEqual([250 / 600, 500 / 600, 1]);
    const contracts = doneIn("subscriptions");
    expect(contracts).toHaveLength(3);
    expect(contracts.every((done, index) => done !== undefined && done > (contracts[index - 1] ?? 0))).toBe(true);
    expect(contracts.at(-1)).toBe(1);
    expect(progress.at(-1)?.counts).toMatchObject({ customers: 600, subscriptions: 600 });
  });

  test("estimates the whole shop's progress after an interruption too", async () => {
    const all = await seeded({ contracts: 600 });
    all.platform.fault = ({ operation, n }) => (operation === "AllContracts" && n > 1 ? { status: 404 } : undefined);
    const texts: string[] = [];
    const load = () => all.load({}, (progress) => texts.push(progressText(progress)));
    await expect(load()).rejects.toThrow("HTTP 404");
    expect(texts.splice(0).at(-1)).toBe("250 of about 610 subscriptions");
    all.platform.fault = () => undefined;
    await load();
    expect(texts).toEqual(["500 of about 600 subscriptions", "600 of 600 subscriptions"]);
  });

  test("needs no estimate of its progress", async () => {
    const all = await seeded({ contracts: 600 });
    all.platform.fault = ({ operation }) => (operation === "NewestContract" ? { status: 404 } : undefined);
    const done: unknown[] = [];
    await all.load({}, (progress) => progress.stage === "subscriptions" && done.push(progress.done));
    expect(done).toEqual([undefined, undefined, undefined]);
    expect(await all.shop.all("subscriptions")).toHaveLength(600);
  });

  test("counts the contracts of a large shop, because most of them may have been made at one time", async () => {
    const all = await connected();
    all.remote.seed({ contracts: 1_800 });
    all.test.clock.ms += HOUR_MS;
    all.createContract();
    all.test.clock.ms += HOUR_MS;
    const texts: string[] = [];
    await all.load({}, (progress) => texts.push(progressText(progress)));
    expect(texts.slice(-2)).toEqual(["1,750 of about 1,900 subscriptions", "1,801 of 1,801 subscriptions"]);
    expect(all.operations().filter((name) => name === "ContractIds").length).toBeLessThan(5);
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
  all.remote.seed({ contracts: 500, linesEach: 1 });
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
   * Starts a load. Its first page waits while the second page is written. Then the first page fails if `fails` is true.
   */
  async function withSlowPage({ fails }: { fails: boolean }) {
    const all = await seeded({ contracts: 600 });
    const slow = Promise.withResolvers<void>();
    const [waiting, failing] = [120, 240].map((index) => all.remote.ids("contract")[index]);
    all.platform.fault = ({ operation, variables }) => {
      const ids = Object.values(variables);
      if (!operation.startsWith("CycleLookup")) return undefined;
      if (ids.includes(waiting)) return { until: slow.promise };
      return fails && ids.includes(failing) ? { status: 503 } : undefined;
    };
    const loading = all.load();
    await eventually(async () => (await all.shop.all("subscriptions")).length === 250);
    const unfinished = () => all.test.app.store.syncs.unfinished(all.shop.shop.id, "full");
    return { ...all, slow, loading, unfinished };
  }

  test("and are noted as read in their order", async () => {
    const all = await withSlowPage({ fails: false });
    expect(await all.unfinished()).toMatchObject({ cursor: null, counts: { subscriptions: 0 } });
    expect(all.operations().filter((name) => name === "AllContracts")).toHaveLength(3);
    all.slow.resolve();
    expect(await all.loading).toMatchObject({ subscriptions: 600 });
  });

  test("and the second one is read again if the first one fails", async () => {
    const all = await withSlowPage({ fails: true });
    all.slow.resolve();
    await expect(all.loading).rejects.toThrow("HTTP 503");
    expect(await all.unfinished()).toMatchObject({ cursor: null, counts: { subscriptions: 0 } });
    all.platform.fault = () => undefined;
    expect(await all.load()).toMatchObject({ subscriptions: 600 });
    expect(await all.shop.all("subscriptions")).toHaveLength(600);
  });

  test("and the first one is noted if the second one fails", async () => {
    const all = await seeded({ contracts: 600 });
    const second = all.remote.ids("contract")[300];
    all.platform.fault = ({ operation, n, variables }) => {
      if (operation.startsWith("CycleLookup") && Object.values(variables).includes(second)) return { status: 503 };
      return operation.startsWith("CycleLookup") && n === 1 ? { delay: 200 } : undefined;
    };
    await expect(all.load()).rejects.toThrow("HTTP 503");
    const { cursor, counts } = (await all.test.app.store.syncs.unfinished(all.shop.shop.id, "full")) ?? {};
    expect([typeof cursor, counts?.subscriptions]).toEqual(["string", 250]);
    all.platform.fault = () => undefined;
    expect(await all.load()).toMatchObject({ subscriptions: 600 });
  });
});

describe("data that cannot be mirrored", () => {
  test("is skipped and logged, and everything else is loaded", async () => {
    const all = await connected();
    all.remote.seed({ contracts: 3, renewals: 1 });
    all.createContract({ interval: "DAY", intervalCount: 100_001 });
    all.test.clock.ms += HOUR_MS;
    expect(await all.load()).toMatchObject({ subscriptions: 3, skipped: 1 });
    expect(JSON.stringify(all.logged("cannot be mirrored"))).toContain("intervalCount");
    expect(await all.inbox()).toMatchObject([{ topic: "subscription_contracts/update", status: "waiting" }]);
    expect(await all.shop.all("subscriptions")).toHaveLength(3);
  });

  test("is skipped for customers too", async () => {
    const all = await connected();
    const node = { id: "gid://shopify/Customer/7", firstName: "Ada", lastName: null, defaultEmailAddress: null };
    const nodes = [
      { ...node, updatedAt: "soon" },
      { ...node, id: "gid://shopify/Customer/8", updatedAt: "2026-01-01T00:00:00Z" },
    ];
    all.replaceAnswers("AllCustomers", answerWith({ customers: pageOfNodes(nodes) }));
    expect(await all.load()).toMatchObject({ customers: 1, skipped: 1 });
    expect(all.logged("a customer of the platform cannot be mirrored")).toHaveLength(1);
    expect(await all.shop.all("customers")).toMatchObject([{ shopifyId: "gid://shopify/Customer/8" }]);
  });

  test("is logged for the first customers one by one, and then as a number", async () => {
    const all = await connected();
    const id = (n: number) => `gid://shopify/Customer/${n}`;
    all.platform.fault = ({ operation, n }) => {
      if (operation !== "AllCustomers") return undefined;
      const nodes = Array.from({ length: 20 }, (_, index) => ({ id: id(100 * n + index), updatedAt: null }));
      return answerWith({ customers: pageOfNodes(nodes, n < 3 ? String(n) : null) });
    };
    expect(await all.load()).toMatchObject({ customers: 0, skipped: 60 });
    const warnings = all.logged("cannot be mirrored");
    expect(warnings).toHaveLength(6);
    expect(warnings[5]).toMatchObject({ more: 55 });
  });

  test.each([
    ["ends the sync if the platform refuses all of several contracts", 2, 404],
    ["does not hide that the platform is down", 1, 503],
  ])("%s", async (_title, contracts, status) => {
    const all = await seeded({ contracts });
    all.replaceAnswers("Nodes", { status });
    await expect(all.load()).rejects.toThrow(`HTTP ${status}`);
    expect(await all.inbox()).toEqual([]);
  });

  test("does not end the sync if it is the only contract", async () => {
    const { all } = await withContract();
    all.test.clock.ms += HOUR_MS;
    all.replaceAnswers("Nodes", { status: 400 });
    expect(await all.load()).toMatchObject({ subscriptions: 0, skipped: 1 });
  });

  test("is cut if its only fault is its length", async () => {
    const { all } = await withContract({ lines: [{ ...LINE, title: "x".repeat(2000) }] });
    all.test.clock.ms += HOUR_MS;
    await all.load();
    expect(await all.shop.all("subscriptions")).toMatchObject([{ lines: [{ title: "x".repeat(1024) }] }]);
  });
});

describe("data without access", () => {
  test("about products is taken from the contract, and logged once", async () => {
    const all = await connected();
    all.remote.scopes = ["read_own_subscription_contracts", "read_customers", "read_orders"];
    all.createContract({ customer: all.remote.createCustomer({ email: "a@example.com", firstName: "Ada" }) });
    await all.deliverAll();
    const lines = [{ title: "House blend", productId: LINE.product }];
    expect(await all.shop.all("orders")).toMatchObject([{ status: "PAID", subtotalCents: 2500, lines }]);
    expect(all.logged("has no access to a field")).toHaveLength(1);
  });

  test("about all customers ends the sync, and the mirror keeps what it has", async () => {
    const all = await connected();
    all.createContract({ customer: all.remote.createCustomer({ email: "a@example.com", firstName: "Ada" }) });
    await all.deliverAll();
    all.remote.scopes = ["read_own_subscription_contracts", "read_orders", "read_products"];
    all.test.clock.ms += HOUR_MS;
    await expect(all.load()).rejects.toThrow("Access denied");
    expect(await all.shop.all("customers")).toMatchObject([{ email: "a@example.com", firstName: "Ada" }]);
  });

  test("about names and addresses leaves the mirror's names and addresses as they are", async () => {
    const all = await connected();
    const customer = all.remote.createCustomer({ email: "a@example.com", firstName: "Ada", lastName: "Lovelace" });
    all.remote.setConsent(customer, "subscribed");
    await all.deliverAll();
    const updatedAt = "2026-06-01T00:00:00Z";
    const node = { id: customer, firstName: null, lastName: "Byron", updatedAt, defaultEmailAddress: null };
    // A denied field that cannot be null makes its parent null.
    const errors = [["firstName"], ["defaultEmailAddress", "emailAddress"]].map((field) => ({
      message: "Access denied",
      path: ["customers", "nodes", 0, ...field],
      extensions: { code: "ACCESS_DENIED" },
    }));
    all.replaceAnswers("AllCustomers", answerWith({ customers: pageOfNodes([node]) }, errors));
    all.test.clock.ms += 120 * 24 * HOUR_MS;
    await all.load();
    expect(await all.shop.all("customers")).toMatchObject([
      { email: "a@example.com", firstName: "Ada", lastName: "Byron", marketingConsent: true },
    ]);
  });

  test("about an order does not hide its charge", async () => {
    const { all, contract } = await withContract();
    const order = all.remote.succeedAttempt(all.remote.startAttempt(contract, 1));
    const body = '{"data":{"nodes":[null,null]}}';
    all.platform.fault = ({ operation }) => (operation === "Nodes" ? { status: 200, body } : undefined);
    all.test.clock.ms += 2 * HOUR_MS;
    await all.load();
    expect(await all.shop.all("subscriptions")).toMatchObject([{ cyclesCompleted: 1 }]);
    expect(await all.shop.all("orders")).toMatchObject([{ status: "PAID", shopifyId: order, totalCents: 2500 }]);
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
