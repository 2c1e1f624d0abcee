import { describe, expect, test } from "bun:test";
import type { ConnectedShop } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import { seemLarge } from "../../support/large-shop.ts";
import { expectLoaded, largeShop, unchangedRows, warnings } from "./large-shop-rows.ts";

function setHost({ files }: ConnectedShop["platform"], status: number): void {
  files.behaviour.status = status;
}

describe("data that bulk operations cannot give is read by pages", () => {
  const cases: [what: string, set: (all: ConnectedShop) => void, parts: number, reason: string][] = [
    ["a refused query", ({ remote }) => remote.setBulk({ refuses: ["Order"] }), 1, "cannot contain Order"],
    ["no operation at all", ({ remote }) => remote.setBulk({ limit: 0 }), 2, "limit reached"],
    [
      "a failed operation with partial data",
      ({ remote }) => remote.setBulk({ failure: { errorCode: "TIMEOUT", afterLines: 50 } }),
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
    expect(await all.load()).toMatchObject({ customers: 90, subscriptions: 90, orders: 180 });
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
      if (runs === 4) expect(await syncs.unfinished(all.shop.shop.id, "full")).toBeDefined();
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
    all.remote.setBulk({ limit: 1, delayMs: null });
    // Request 3 starts the second operation; its answer is lost. The test ends each operation after a refusal: of
    // request 2, then of request 4, which repeats request 3.
    seemLarge(all, ({ operation, n }) => (operation === "RunBulkQuery" && n === 3 ? "lost" : undefined));
    const loading = all.load();
    // Prevents an unhandled rejection: the test awaits the load later.
    loading.catch(() => undefined);
    for (const refused of [2, 4]) {
      await eventually(() => all.operations().filter((name) => name === "RunBulkQuery").length === refused);
      await all.remote.finishBulkOperations();
    }
    await loading;
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
    expect(adds).toBe(3);
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
