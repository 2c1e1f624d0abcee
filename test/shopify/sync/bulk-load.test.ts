import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { SyncProgress } from "../../../src/domain/platform/load-progress.ts";
import { cleanUp } from "../../support/cleanup.ts";
import { connected, createContract, HOUR_MS, LINE } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import { seemLarge } from "../../support/large-shop.ts";
import type { PlatformShop } from "../../support/platform/shop.ts";
import { expectLoaded, largeShop, unchangedRows, warnings } from "./large-shop-rows.ts";

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
    expect(await all.load()).toMatchObject({ customers: 90, subscriptions: 90, orders: 180, skipped: 0 });
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
    expect(read.at(-1)).toMatchObject({ done: 180 / 5_000, bulk: { count: 180 } });
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
    await all.reconcile();
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
    await eventually(() => count("AllContracts") === 2 && count("CycleLookup") === 2);
    return { all, loading, count };
  }

  test("and reads each page once", async () => {
    const { all, loading, count } = await withPagesAhead();
    expect(await all.shop.all("subscriptions")).toEqual([]);
    await all.remote.finishBulkOperations();
    expect(await loading).toMatchObject({ customers: 90, subscriptions: 90, orders: 180 });
    expect([count("AllContracts"), count("CycleLookup")]).toEqual([2, 2]);
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
  expect(await all.load()).toMatchObject({ customers: 90, subscriptions: 90, orders: 180 });
  expect(warnings(all)).toEqual([]);
  expect(all.operations().filter((name) => /^(AllCustomers|Nodes)$/.test(name))).toEqual([]);
  await expectLoaded(all, await unchangedRows());
});

test("two loads at once are harmless", async () => {
  const all = await largeShop();
  await Promise.all([all.load(), all.load()]);
  await expectLoaded(all, await unchangedRows());
});
