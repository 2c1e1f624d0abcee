import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import type { SyncProgress } from "../../../src/domain/platform/load-progress.ts";
import { cleanUp } from "../../support/cleanup.ts";
import {
  type ConnectedShop,
  connected,
  connectedTo,
  createContract,
  HOUR_MS,
  LINE,
  seeded,
} from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import { seemLarge } from "../../support/large-shop.ts";
import type { PlatformShop } from "../../support/platform/shop.ts";
import { readRows } from "../../support/rows.ts";

/** Reads the mirror, without the times at which it first saw each customer. */
async function rowsOf({ shop }: ConnectedShop) {
  const lists = await Promise.all(["customers", "subscriptions", "orders"].map((resource) => shop.all(resource)));
  for (const customer of lists[0] ?? []) delete customer["createdAt"];
  return lists.map((rows) => rows.toSorted((a, b) => String(a["id"]).localeCompare(String(b["id"]))));
}

/** Makes a large shop. More than one batch is read from its file. */
async function largeShop() {
  const all = await seeded({ contracts: 260, linesEach: 2, renewals: 1 });
  seemLarge(all);
  return all;
}

type Rows = Awaited<ReturnType<typeof rowsOf>>;

async function loadByPages({ platform, test }: ConnectedShop): Promise<Rows> {
  const other = await connectedTo(platform, {}, test.clock.ms);
  await other.load({ pages: true });
  return rowsOf(other);
}

let unchanged: Promise<Rows> | undefined;

/** The rows of the large shop after a load by pages, for tests in which the shop does not change. They are read once. */
async function unchangedRows(): Promise<Rows> {
  unchanged ??= largeShop().then(loadByPages);
  return unchanged;
}

/** Expects that the mirror has the same rows as after a load by pages, and that no orders are staged. */
async function expectLoaded(all: ConnectedShop, rows?: Rows): Promise<void> {
  expect(await rowsOf(all)).toEqual(rows ?? (await loadByPages(all)));
  const { test } = all;
  const data = join(test.folder, "data");
  const staged = (["order_stages", "staged_orders", "staged_order_lines"] as const).map((table) =>
    readRows(data, table),
  );
  expect(staged).toEqual([[], [], []]);
  expect(await test.app.store.syncs.unfinished(all.shop.shop.id, "full")).toBeUndefined();
}

function setHost({ files }: ConnectedShop["platform"], status: number): void {
  files.behaviour.status = status;
}

function warnings(all: ConnectedShop): string[] {
  return all.logged("cannot read with a bulk operation").map((entry) => JSON.stringify(entry));
}

const CHANGES: ((remote: PlatformShop, n: number) => void)[] = [
  (remote, n) => void createContract(remote, { lines: Array.from({ length: n * 6 + 1 }, () => LINE) }),
  (remote, n) => {
    const customer = remote.createCustomer({ email: `${n}@example.com`, firstName: "Ada", marketing: "subscribed" });
    const lines = Array.from({ length: n + 1 }, (_, index) => ({ ...LINE, quantity: index + 1 }));
    remote.createContracts([
      { customer, lines },
      { customer, lines: [LINE], interval: "WEEK" },
    ]);
  },
  (remote, n) => remote.updateOrder(one(remote, "order", n), { financialStatus: "REFUNDED" }),
  (remote, n) => remote.cancelOrder(one(remote, "order", n)),
  (remote, n) => remote.cancel(one(remote, "contract", n)),
  (remote) => void remote.placeOrder(),
  (remote, n) => {
    remote.setRates({ JPY: 0.006 + n / 10_000 });
    createContract(remote, { currency: "JPY", lines: [{ ...LINE, price: "3000" }], originOrder: n % 3 > 0 });
  },
  (remote, n) => remote.editOrder(one(remote, "order", n), [n % 3]),
  (remote, n) => {
    const attempt = remote.startAttempt(one(remote, "contract", n), 1);
    if (n % 3 === 0) return void remote.failAttempt(attempt, "CARD_DECLINED");
    remote.succeedAttempt(attempt, { discounts: [{ title: "Loyalty credit", amount: "1.25" }] });
  },
];

function one(remote: PlatformShop, kind: "order" | "contract", n: number): string {
  const ids = remote.ids(kind);
  return ids[n % ids.length] ?? "";
}

describe("a load with bulk operations", () => {
  test("gives the same mirror as a load by pages, whatever the shop has", async () => {
    const changes = fc.array(fc.record({ change: fc.nat(CHANGES.length - 1), n: fc.nat(20) }), { maxLength: 25 });
    const property = fc.asyncProperty(changes, fc.integer({ min: 0, max: 1000 }), async (list, shuffledLines) => {
      const all = await connected();
      all.remote.seed({ contracts: 3, renewals: 2 });
      for (const { change, n } of list) {
        all.test.clock.ms += 1000;
        try {
          CHANGES[change]?.(all.remote, n);
        } catch {
          // The platform may refuse a change in the current state.
        }
      }
      all.test.clock.ms += HOUR_MS;
      seemLarge(all);
      all.remote.setBulk({ shuffledLines });
      await all.load();
      expect(warnings(all)).toEqual([]);
      await expectLoaded(all);
      await cleanUp();
    });
    await fc.assert(property, { numRuns: 8 });
  });

  test("reads customers and orders from files, and no order by its id", async () => {
    const all = await largeShop();
    expect(await all.load()).toMatchObject({ customers: 260, subscriptions: 260, orders: 520, skipped: 0 });
    const asked = all.operations();
    expect(asked.filter((name) => /^(AllCustomers|Nodes|Orders)$/.test(name))).toEqual([]);
    expect(asked.filter((name) => name === "RunBulkQuery")).toHaveLength(2);
    expect(all.platform.files.downloads).toHaveLength(2);
    await expectLoaded(all, await unchangedRows());
  });

  test("is not used for a small shop, or if pages are wanted", async () => {
    const small = await connected();
    small.remote.seed({ contracts: 30, renewals: 1 });
    await small.load();
    expect(small.operations()).not.toContain("RunBulkQuery");
    const all = await largeShop();
    await all.load({ pages: true });
    expect(all.operations()).not.toContain("RunBulkQuery");
  });

  test("reports what the platform prepares, and how much of the file is read", async () => {
    const all = await largeShop();
    all.remote.setBulk({ delayMs: 5 });
    const progress: SyncProgress[] = [];
    await all.load({}, (each) => progress.push(each));
    const shown = progress.map(({ stage, bulk }) => `${stage} ${bulk?.what} ${bulk?.state}`);
    expect([...new Set(shown)]).toEqual([
      "customers customers preparing",
      "customers customers reading",
      "orders orders preparing",
      "orders orders reading",
      "subscriptions undefined undefined",
    ]);
    const read = progress.filter(({ bulk }) => bulk?.what === "orders" && bulk.state === "reading");
    expect(read.at(-1)).toMatchObject({ done: 520 / 5_000, bulk: { count: 520 } });
  });

  test("leaves an order that changed after the operation to the platform webhooks and the reconciliation", async () => {
    const all = await largeShop();
    const order = all.remote.ids("order")[0] ?? "";
    seemLarge(all, ({ operation, n }) => {
      if (operation === "AllContracts" && n === 1) {
        all.remote.updateOrder(order, { lines: [{ title: "Tea", price: "3.00" }] });
        // The platform's webhook is lost.
        all.remote.outgoing.length = 0;
        all.test.clock.ms += 1_000;
      }
      return undefined;
    });
    await all.load();
    all.test.clock.ms += HOUR_MS;
    await all.test.app.platform.synchronizer.reconcile(all.shop.shop);
    expect((await all.shop.all("orders")).find(({ shopifyId }) => shopifyId === order)).toMatchObject({
      totalCents: 300,
    });
    await expectLoaded(all);
  });
});

describe("while bulk operations run, a load reads pages of contracts in advance", () => {
  async function withPagesAhead() {
    const all = await largeShop();
    all.remote.setBulk({ delayMs: null });
    const loading = all.load();
    // Prevents an unhandled rejection: the test awaits the load later.
    loading.catch(() => undefined);
    const count = (name: string) => all.operations().filter((operation) => operation.startsWith(name)).length;
    await eventually(() => count("AllContracts") === 2 && count("CycleLookup") === 4);
    return { all, loading, count };
  }

  test("and reads each page once", async () => {
    const { all, loading, count } = await withPagesAhead();
    expect(await all.shop.all("subscriptions")).toEqual([]);
    await all.remote.finishBulkOperations();
    expect(await loading).toMatchObject({ customers: 260, subscriptions: 260, orders: 520 });
    expect([count("AllContracts"), count("CycleLookup")]).toEqual([2, 4]);
    await expectLoaded(all, await unchangedRows());
  });

  test("and reads them again if the operations take longer than a minute", async () => {
    const { all, loading, count } = await withPagesAhead();
    const contract = all.remote.ids("contract")[5] ?? "";
    all.test.clock.ms += HOUR_MS;
    all.remote.cancel(contract);
    await all.deliverAll();
    await all.remote.finishBulkOperations();
    await loading;
    expect(count("AllContracts")).toBeGreaterThan(2);
    const mirrored = (await all.shop.all("subscriptions")).find(({ shopifyId }) => shopifyId === contract);
    expect(mirrored).toMatchObject({ status: "CANCELLED" });
    await expectLoaded(all);
  });
});

test("a person who is redacted after the file was made stays redacted", async () => {
  const all = await largeShop();
  const customer = all.remote.ids("customer")[0] ?? "";
  let redacting: Promise<void> | undefined;
  seemLarge(all, ({ operation }) => {
    const [customers] = all.remote.bulk.all;
    if (operation !== "BulkOperation" || customers?.status !== "COMPLETED" || redacting !== undefined) return undefined;
    all.remote.redactCustomer(customer);
    redacting = all.deliverAll();
    return { until: redacting };
  });
  await all.load();
  expect(redacting).toBeDefined();
  const mirrored = (await all.shop.all("customers")).find(({ shopifyId }) => shopifyId === customer);
  expect(mirrored).toMatchObject({ email: null, firstName: null, lastName: null });
});

test("a load waits for its bulk operations while the platform cannot be reached", async () => {
  const all = await largeShop();
  // The client itself retries each failed status query four times.
  seemLarge(all, ({ operation, n }) =>
    operation === "BulkOperation" && (n <= 15 || (n > 20 && n <= 40)) ? { status: 503 } : undefined,
  );
  expect(await all.load()).toMatchObject({ customers: 260, subscriptions: 260, orders: 520 });
  expect(warnings(all)).toEqual([]);
  expect(all.operations().filter((name) => /^(AllCustomers|Nodes)$/.test(name))).toEqual([]);
  await expectLoaded(all, await unchangedRows());
});

describe("data that bulk operations cannot give is read by pages", () => {
  const cases: [what: string, set: (all: ConnectedShop) => void, parts: number, reason: string][] = [
    ["a refused query", ({ remote }) => remote.setBulk({ refuses: ["Order"] }), 1, "cannot contain Order"],
    ["no operation at all", ({ remote }) => remote.setBulk({ limit: 0 }), 2, "limit reached"],
    [
      "a failed operation with partial data",
      ({ remote }) => remote.setBulk({ failure: { errorCode: "TIMEOUT", afterLines: 100 } }),
      2,
      "FAILED, TIMEOUT",
    ],
    [
      "a missing scope",
      ({ remote }) => remote.setScopes(["read_own_subscription_contracts", "read_customers", "read_orders"]),
      1,
      "ACCESS_DENIED",
    ],
    ["a host that refuses", ({ platform }) => setHost(platform, 403), 2, "HTTP 403"],
    ["a host that fails", ({ platform }) => setHost(platform, 503), 2, "HTTP 503"],
    [
      "an error of the platform",
      (all) => seemLarge(all, ({ operation }) => (operation === "RunBulkQuery" ? { status: 500 } : undefined)),
      2,
      "HTTP 500",
    ],
  ];

  test.each(cases)("after %s", async (_, set, parts, reason) => {
    const all = await largeShop();
    set(all);
    expect(await all.load()).toMatchObject({ customers: 260, subscriptions: 260, orders: 520 });
    expect(warnings(all)).toHaveLength(parts);
    expect(warnings(all).join("")).toContain(reason);
    await expectLoaded(all, await unchangedRows());
  });

  test("after an operation was canceled, or its file is gone in the middle", async () => {
    const all = await largeShop();
    seemLarge(all, ({ operation }) => {
      const [customers] = all.remote.bulk.all;
      // Sets CANCELED again at each status query, because the operation may complete between two queries.
      const isLook = operation === "BulkOperation" && all.platform.files.downloads.length === 0;
      if (isLook && customers !== undefined) customers.status = "CANCELED";
      return undefined;
    });
    all.platform.files.behaviour.cuts = { downloads: 9, afterBytes: 5_000 };
    const expire = setInterval(() => all.platform.files.downloads.length > 0 && all.remote.expireBulkOperations(), 1);
    await all.load();
    clearInterval(expire);
    expect(warnings(all).join("")).toContain("CANCELED");
    expect(warnings(all).join("")).toContain("no longer has the result");
    await expectLoaded(all, await unchangedRows());
  });

  test("without the count of orders", async () => {
    const all = await largeShop();
    const { fault } = all.platform;
    all.platform.fault = (info) => (info.operation === "OrdersCount" ? { status: 404 } : fault(info));
    await all.load();
    expect(all.operations().filter((name) => name === "RunBulkQuery")).toHaveLength(1);
    await expectLoaded(all, await unchangedRows());
  });

  test("with one operation at a time, the second begins after the first", async () => {
    const all = await largeShop();
    all.remote.setBulk({ limit: 1 });
    await all.load();
    expect(warnings(all)).toEqual([]);
    await expectLoaded(all, await unchangedRows());
  });
});

describe("a load that is interrupted", () => {
  test("anywhere goes on there, with the same operations, and reads no batch twice", async () => {
    const all = await largeShop();
    const { syncs } = all.test.app.store;
    let stopAt = 1;
    let requests = 0;
    seemLarge(all, ({ operation }) => {
      requests += 1;
      if (requests < stopAt) return undefined;
      // The program stops before this answer, but an operation that it began goes on. A status query gets 404, because
      // the program would retry a lost status query for days.
      return operation === "BulkOperation" ? { status: 404 } : "lost";
    });
    let runs = 0;
    for (let isDone = false; !isDone; runs += 1) {
      requests = 0;
      stopAt = runs + 2;
      isDone = await all.load().then(
        () => true,
        () => false,
      );
      if (runs > 60) throw new Error("the load does not end");
      if (!isDone && runs === 8) expect(await syncs.unfinished(all.shop.shop.id, "full")).toBeDefined();
    }
    expect(runs).toBeGreaterThan(5);
    expect(all.operations().filter((name) => name === "RunBulkQuery")).toHaveLength(2);
    seemLarge(all);
    await expectLoaded(all, await unchangedRows());
  });

  test("just after the platform started an operation finds that operation, and starts no other", async () => {
    const all = await largeShop();
    let isKilled = false;
    seemLarge(all, ({ operation }) => {
      if (operation === "RunBulkQuery" && !isKilled) {
        isKilled = true;
        return "lost";
      }
      return isKilled ? { status: 404 } : undefined;
    });
    await expect(all.load()).rejects.toThrow("HTTP 404");
    expect(all.remote.bulk.all).toHaveLength(1);
    seemLarge(all);
    await all.load();
    expect(all.remote.bulk.all).toHaveLength(2);
    await expectLoaded(all, await unchangedRows());
  });

  test("because the platform is down tries bulk operations again", async () => {
    const all = await largeShop();
    seemLarge(all, ({ operation }) => (operation === "OldestContract" ? undefined : { status: 503 }));
    await expect(all.load()).rejects.toThrow("HTTP 503");
    seemLarge(all);
    await all.load();
    expect(all.operations()).not.toContain("Nodes");
    await expectLoaded(all, await unchangedRows());
  });

  test("by a lost answer uses the operation that already runs", async () => {
    const all = await largeShop();
    all.remote.setBulk({ limit: 1, delayMs: 20 });
    // Request 2 is refused while the first operation runs. Request 3 starts the second operation; its answer is lost.
    seemLarge(all, ({ operation, n }) => (operation === "RunBulkQuery" && n === 3 ? "lost" : undefined));
    await all.load();
    expect(warnings(all)).toEqual([]);
    expect(all.remote.bulk.all).toHaveLength(2);
    await expectLoaded(all, await unchangedRows());
  });

  test("in the middle of a file goes on at that line", async () => {
    const all = await largeShop();
    const { orderStages, syncs } = all.test.app.store;
    const add = orderStages.add;
    let adds = 0;
    orderStages.add = async (...args) => {
      adds += 1;
      if (adds === 2) throw new Error("killed");
      return add(...args);
    };
    await expect(all.load()).rejects.toThrow("killed");
    const { bulk } = (await syncs.unfinished(all.shop.shop.id, "full")) ?? {};
    expect(bulk?.customers).toBeUndefined();
    expect(bulk?.orders?.offset).toBeGreaterThan(1_000);
    const begun = all.platform.requests.length;
    await all.load();
    expect(all.platform.files.downloads.at(-1)?.range).toBe(`bytes=${bulk?.orders?.offset}-`);
    expect(all.operations(begun)).not.toContain("RunBulkQuery");
    expect(adds).toBe(5);
    await expectLoaded(all, await unchangedRows());
  });

  test("and whose result has expired begins a new operation", async () => {
    const all = await largeShop();
    const { orderStages } = all.test.app.store;
    const { begin } = orderStages;
    orderStages.begin = () => Promise.reject(new Error("killed"));
    await expect(all.load()).rejects.toThrow("killed");
    orderStages.begin = begin;
    all.remote.expireBulkOperations();
    await all.load();
    expect(warnings(all)).toEqual([]);
    expect(all.operations().filter((name) => name === "RunBulkQuery")).toHaveLength(3);
    await expectLoaded(all, await unchangedRows());
  });

  test("and goes on with pages, if pages are wanted", async () => {
    const all = await largeShop();
    all.platform.files.behaviour.status = 503;
    all.test.app.store.orderStages.begin = () => Promise.reject(new Error("killed"));
    await expect(all.load()).rejects.toThrow("killed");
    await all.load({ pages: true });
    await expectLoaded(all, await unchangedRows());
  });
});

test("a load whose orders another load has removed says so", async () => {
  const all = await largeShop();
  all.test.app.store.orderStages.add = async () => false;
  await all.load();
  expect(warnings(all)).toEqual([]);
  expect(all.logged("another load of the shop runs")).toHaveLength(1);
  await expectLoaded(all, await unchangedRows());
});

test("two loads at once are harmless", async () => {
  const all = await largeShop();
  await Promise.all([all.load(), all.load()]);
  await expectLoaded(all, await unchangedRows());
});
