import { describe, expect, test } from "bun:test";
import { customer, gid, order, subscription } from "../support/records.ts";
import { engines, storeWithShop, storeWithTwoShops } from "./engines.ts";
import { commit } from "./fixtures.ts";

describe.each(engines())("$name: the orders of a contract", (engine) => {
  test("are found by cycle, with the checkout as cycle 0, as they are served", async () => {
    const { store, shop } = await storeWithShop(engine);
    await commit(store, shop, [
      subscription(1),
      order(1, 0, { source: "checkout" }),
      order(1, 1),
      order(1, 2, { status: "FAILED" }),
    ]);
    const orders = await store.mirror.ordersOf(shop, gid.contract(1));
    expect([...orders].sort(([a], [b]) => a - b)).toMatchObject([
      [0, { source: "checkout", cycleNumber: 0, shopifyId: gid.order(1000), status: "PAID" }],
      [1, { source: "recurring", cycleNumber: 1, shopifyId: gid.order(1001) }],
      [2, { status: "FAILED", totalCents: 1900 }],
    ]);
  });

  test("are found however many there are, with up to 12 cycles from one to the next", async () => {
    const { store, shop } = await storeWithShop(engine);
    const without = [...Array(20).keys()].map((n) => 12 * (n + 1));
    const many = [...Array(150).keys()].map((n) => n + 1);
    await commit(store, shop, [
      subscription(1),
      subscription(2),
      ...without.map((cycle) => order(1, cycle)),
      ...many.map((cycle) => order(2, cycle)),
    ]);
    expect([...(await store.mirror.ordersOf(shop, gid.contract(1))).keys()].sort((a, b) => a - b)).toEqual(without);
    expect([...(await store.mirror.ordersOf(shop, gid.contract(2))).keys()].sort((a, b) => a - b)).toEqual(many);
  });

  test("are empty for a contract without orders, an unknown contract, and another shop's contract", async () => {
    const { store, shop: alpha, other: beta } = await storeWithTwoShops(engine);
    await commit(store, alpha, [subscription(1), subscription(2), order(2, 1)]);
    expect(await store.mirror.ordersOf(alpha, gid.contract(1))).toEqual(new Map());
    expect(await store.mirror.ordersOf(alpha, gid.contract(9))).toEqual(new Map());
    expect(await store.mirror.ordersOf(beta, gid.contract(2))).toEqual(new Map());
    expect(await store.mirror.ordersOf({ ...alpha, id: beta.id }, gid.contract(2))).toEqual(new Map());
  });
});

test.each(engines())("$name: a contract and its customer are found by gid, only in their shop", async (engine) => {
  const { store, shop: alpha, other: beta } = await storeWithTwoShops(engine);
  for (const shop of [alpha, beta])
    await commit(
      store,
      shop,
      [1, 2, 7, 8, 9].map((n) => customer(n)),
    );
  await commit(store, alpha, [subscription(1, { customer: gid.customer(7) })]);
  const found = { customerGid: gid.customer(7), subscription: { shopifyId: gid.contract(1), interval: "MONTH" } };
  expect(await store.mirror.contractOf(alpha, gid.contract(1))).toMatchObject(found);
  expect(await store.mirror.contractOf(alpha, gid.contract(2))).toBeUndefined();
  expect(await store.mirror.contractOf(beta, gid.contract(1))).toBeUndefined();
  expect(await store.mirror.contractOf({ ...alpha, id: beta.id }, gid.contract(1))).toBeUndefined();
  await commit(store, alpha, [subscription(1, { customer: gid.customer(8) })]);
  expect((await store.mirror.contractOf(alpha, gid.contract(1)))?.customerGid).toBe(gid.customer(8));
});
