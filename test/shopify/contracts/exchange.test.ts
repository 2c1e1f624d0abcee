import { describe, expect, test } from "bun:test";
import type { Subscription } from "../../../src/domain/resources.ts";
import { type ConnectedShop, connected, HOUR_MS, LINE } from "../../support/connected.ts";
import { seemLarge } from "../../support/large-shop.ts";
import type { ContractInput } from "../../support/platform/contract-changes.ts";

const MONTH_MS = 32 * 24 * HOUR_MS;
const RATES = { JPY: 0.00671, KWD: 3.25, USDC: 1, XXX: 2 };

async function dollarShop(): Promise<ConnectedShop> {
  const all = await connected();
  all.remote.setRates(RATES);
  return all;
}

function yen(all: ConnectedShop, fields: Partial<ContractInput> = {}): string {
  return all.createContract({ currency: "JPY", lines: [{ ...LINE, price: "3000", quantity: 1 }], ...fields });
}

async function pricesOf({ shop }: ConnectedShop, gid: string) {
  const found = (await shop.all("subscriptions")).find(({ shopifyId }) => shopifyId === gid);
  const { lines } = found as unknown as Pick<Subscription, "lines">;
  return lines.map(({ unitPriceCents }) => unitPriceCents);
}

async function totals({ shop }: ConnectedShop) {
  const orders = await shop.all("orders");
  return orders.map(({ cycleNumber, status, totalCents }) => [cycleNumber, status, totalCents]).toReversed();
}

const warnings = (all: ConnectedShop) => all.logged("no order has shown the rate").map(({ contract }) => contract);

describe("a contract in another currency than the shop's", () => {
  test.each([
    ["JPY", "3000", 2013],
    ["KWD", "12.500", 4063],
    ["USDC", "12.5", 1250],
    ["XXX", "12.5", 2500],
  ])("is served in the shop's currency: %s %s is %d cents", async (currency, price, cents) => {
    const all = await dollarShop();
    const contract = yen(all, { currency, lines: [{ ...LINE, price, quantity: 1 }] });
    all.remote.failAttempt(all.remote.startAttempt(contract, 1));
    await all.deliverAll();
    expect(await pricesOf(all, contract)).toEqual([cents]);
    expect(await totals(all)).toEqual([
      [0, "PAID", cents],
      [1, "FAILED", cents],
    ]);
    expect(warnings(all)).toEqual([]);
  });

  test("keeps its rate until its next order gives a newer one", async () => {
    const all = await dollarShop();
    const contract = yen(all);
    await all.deliverAll();
    all.remote.setRates({ JPY: 0.008 });
    all.test.clock.ms += MONTH_MS;
    all.remote.updateContract(contract, { lines: [{ ...LINE, price: "6000", quantity: 1 }] });
    const attempt = all.remote.startAttempt(contract, 1);
    all.remote.challenge(attempt);
    await all.deliverAll();
    expect(await pricesOf(all, contract)).toEqual([4026]);
    all.remote.succeedAttempt(attempt);
    await all.deliverAll();
    expect(await pricesOf(all, contract)).toEqual([4800]);
    expect(await totals(all)).toEqual([
      [0, "PAID", 2013],
      [1, "PAID", 4800],
    ]);
  });

  test("is read with the same queries and points as a contract in the shop's currency", async () => {
    const all = await dollarShop();
    const spent: unknown[] = [];
    for (const contract of [all.createContract(), yen(all)]) {
      await all.deliverAll();
      const before = all.platform.requests.length;
      all.remote.succeedAttempt(all.remote.startAttempt(contract, 1));
      await all.deliverAll();
      spent.push(all.platform.requests.slice(before).map(({ operation, cost }) => [operation, cost]));
    }
    expect(spent[1]).toEqual(spent[0]);
  });

  test("has the expected amount of an edited cycle in the shop's currency", async () => {
    const all = await dollarShop();
    const contract = yen(all);
    all.remote.editCycle(contract, 1, [{ ...LINE, price: "1000", quantity: 1 }]);
    all.remote.failAttempt(all.remote.startAttempt(contract, 1));
    await all.deliverAll();
    expect((await totals(all)).at(-1)).toEqual([1, "FAILED", 671]);
  });

  test("has discounts that are converted once, and none without a discount", async () => {
    const all = await dollarShop();
    const line = { ...LINE, price: "3001", quantity: 7 };
    const contract = yen(all, {
      lines: [line, { ...line, variant: "gid://shopify/ProductVariant/9", discounted: "20000" }],
    });
    all.remote.failAttempt(all.remote.startAttempt(contract, 1));
    await all.deliverAll();
    const [order] = await all.shop.all("orders");
    // Each piece of the first line costs 20.14, as in the checkout. The second line's 20,000 yen are 134.22 at the rate
    // of the checkout.
    expect(order).toMatchObject({ cycleNumber: 1, subtotalCents: 2 * 7 * 2014, totalCents: 7 * 2014 + 13422 });
  });
});

test("a load with staged orders has the rate of each contract's order", async () => {
  const all = await dollarShop();
  const contracts = [0.006, 0.007].map((JPY) => {
    all.remote.setRates({ JPY });
    all.test.clock.ms += HOUR_MS;
    return yen(all);
  });
  all.test.clock.ms += HOUR_MS;
  seemLarge(all);
  await all.load();
  expect(all.operations()).toContain("RunBulkQuery");
  expect(await Promise.all(contracts.map((gid) => pricesOf(all, gid)))).toEqual([[1800], [2100]]);
});

test("a contract whose rate was not stored yet has the rate of its newest mirrored order", async () => {
  const all = await dollarShop();
  const contract = yen(all);
  await all.deliverAll();
  all.remote.setRates({ JPY: 0.008 });
  all.test.clock.ms += MONTH_MS;
  all.remote.succeedAttempt(all.remote.startAttempt(contract, 1));
  await all.deliverAll();
  // Stores a reading without the rate, as if an earlier version had mirrored the checkout and the renewal.
  const reads = [{ contract, beganAt: 0, updatedAt: 0, orders: new Map(), currency: null }];
  await all.test.app.store.mirror.applyRecords([{ shop: all.shop.shop, records: [], reads }], 0, []);
  all.remote.pause(contract);
  await all.deliverAll();
  expect(await pricesOf(all, contract)).toEqual([2400]);
});

describe("a contract without an order", () => {
  test("has the newest rate of its currency in the shop", async () => {
    const all = await dollarShop();
    for (const JPY of [0.006, 0.007]) {
      all.remote.setRates({ JPY });
      yen(all);
      await all.deliverAll();
      all.test.clock.ms += HOUR_MS;
    }
    const contract = yen(all, { originOrder: false });
    await all.deliverAll();
    expect(await pricesOf(all, contract)).toEqual([2100]);
    expect(warnings(all)).toEqual([]);
  });

  test("costs 0 while no order of the shop has shown the rate, and one warning names it", async () => {
    const all = await dollarShop();
    all.remote.setRates({ ...RATES, JPY: 0.006 });
    yen(all, { currency: "KWD" });
    const contract = yen(all, { originOrder: false });
    all.remote.failAttempt(all.remote.startAttempt(contract, 1));
    await all.deliverAll();
    all.remote.pause(contract);
    await all.deliverAll();
    expect(await pricesOf(all, contract)).toEqual([0]);
    expect((await totals(all)).at(-1)).toEqual([1, "FAILED", 0]);
    expect(warnings(all)).toEqual([contract]);
  });

  test("is read again by the reconciliation once an order has shown the rate", async () => {
    const all = await dollarShop();
    const contract = yen(all, { originOrder: false });
    await all.deliverAll();
    await all.load();
    all.test.clock.ms += HOUR_MS;
    yen(all);
    await all.deliverAll();
    expect(await pricesOf(all, contract)).toEqual([0]);
    await all.reconcile();
    expect(await pricesOf(all, contract)).toEqual([2013]);
    const before = all.platform.requests.length;
    await all.reconcile();
    expect(all.operations(before)).not.toContain("Nodes");
  });

  test("has the rate after a load, also if the order with the rate comes later", async () => {
    const all = await dollarShop();
    const contract = yen(all, { originOrder: false });
    all.test.clock.ms += HOUR_MS;
    yen(all);
    all.test.clock.ms += HOUR_MS;
    await all.load();
    expect(await pricesOf(all, contract)).toEqual([2013]);
  });
});
