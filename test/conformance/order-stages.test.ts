import { describe, expect, test } from "bun:test";
import { engines, storeInTwoProcesses, storeWithShop, storeWithTwoShops } from "./engines.ts";
import { removeShop } from "./fixtures.ts";

const order = (number: number, json = "{}") => ({ gid: `gid://shopify/Order/${number}`, json });
const line = (ofOrder: number, number: number, json = `{"n":${number}}`) => ({
  orderGid: order(ofOrder).gid,
  gid: `gid://shopify/LineItem/${number}`,
  json,
});

describe.each(engines())("$name: staged orders", (engine) => {
  test("are found with their lines in order, once the stage is complete", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    const { orderStages } = store;
    const stage = (await orderStages.begin(shop.id)) ?? 0;
    expect(await orderStages.add(shop.id, stage, [], [line(1, 10), line(2, 7)])).toBe(true);
    expect(await orderStages.add(shop.id, stage, [order(1, '{"a":1}'), order(3)], [line(1, 9)])).toBe(true);
    expect(await orderStages.find(shop.id, order(1).gid)).toBeUndefined();
    expect(await orderStages.complete(shop.id, stage)).toBe(true);
    const found = { order: '{"a":1}', lines: ['{"n":9}', '{"n":10}'] };
    expect(await orderStages.find(shop.id, order(1).gid)).toEqual(found);
    expect(await orderStages.find(shop.id, order(3).gid)).toEqual({ order: "{}", lines: [] });
    // A line item of order 2 was staged, but the order itself was not.
    expect(await orderStages.find(shop.id, order(2).gid)).toBeUndefined();
    expect(await orderStages.find(other.id, order(1).gid)).toBeUndefined();
  });

  test("that are added twice are stored once, in the last version", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    const stage = (await store.orderStages.begin(shop.id)) ?? 0;
    for (const json of ["1", "2"]) await store.orderStages.add(shop.id, stage, [order(1, json)], [line(1, 1, json)]);
    await store.orderStages.complete(shop.id, stage);
    expect(await store.orderStages.find(shop.id, order(1).gid)).toEqual({ order: "2", lines: ["2"] });
    expect([await rows("staged_orders"), await rows("staged_order_lines")].map(({ length }) => length)).toEqual([1, 1]);
  });

  test("that come twice in one call are stored in the last version", async () => {
    const { store, shop } = await storeWithShop(engine);
    const stage = (await store.orderStages.begin(shop.id)) ?? 0;
    const lines = [line(1, 1, "1"), line(2, 1, "2"), line(1, 1, "3")];
    await store.orderStages.add(shop.id, stage, [order(1, "1"), order(2), order(1, "2")], lines);
    await store.orderStages.complete(shop.id, stage);
    expect(await store.orderStages.find(shop.id, order(1).gid)).toEqual({ order: "2", lines: ["3"] });
    expect(await store.orderStages.find(shop.id, order(2).gid)).toEqual({ order: "{}", lines: ["2"] });
  });

  test("that are added while another process removes their stage leave no row", async () => {
    const { store, second: other, rows, shop } = await storeInTwoProcesses(engine);
    for (let round = 0; round < 5; round += 1) {
      const stage = (await store.orderStages.begin(shop.id)) ?? 0;
      const adding = Array.from({ length: 8 }, (_, n) =>
        store.orderStages.add(shop.id, stage, [order(n)], [line(n, 1), line(n, 2)]),
      );
      await Promise.all([...adding, other.orderStages.remove(shop.id)]);
      for (const table of ["order_stages", "staged_orders", "staged_order_lines"] as const)
        expect(await rows(table)).toEqual([]);
    }
  });

  test("are removed with their stage, and nothing can be added to it any more", async () => {
    const { store, rows, shop, other } = await storeWithTwoShops(engine);
    const { orderStages } = store;
    const stages: number[] = [];
    for (const { id } of [shop, shop, other]) {
      const stage = (await orderStages.begin(id)) ?? 0;
      const lines = Array.from({ length: 700 }, (_, n) => line(n, n));
      await orderStages.add(id, stage, [order(1)], lines);
      await orderStages.complete(id, stage);
      stages.push(stage);
    }
    const [first = 0, second = 0, others = 0] = stages;
    await orderStages.remove(shop.id, second);
    expect((await rows("order_stages")).map(({ number }) => number)).toEqual([second, others]);
    expect(await rows("staged_order_lines")).toHaveLength(1_400);
    expect(await orderStages.add(shop.id, first, [order(2)], [])).toBe(false);
    expect(await orderStages.complete(shop.id, first)).toBe(false);
    expect(await orderStages.find(shop.id, order(1).gid)).toBeDefined();
    await orderStages.remove(shop.id);
    expect(await orderStages.find(shop.id, order(1).gid)).toBeUndefined();
    expect((await rows("staged_orders")).map(({ stage }) => stage)).toEqual([others]);
  });

  test("of a shop that was removed are refused", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    const stage = (await store.orderStages.begin(shop.id)) ?? 0;
    await removeShop(store, shop.domain);
    expect(await store.orderStages.begin(shop.id)).toBeUndefined();
    expect(await store.orderStages.add(shop.id, stage, [order(1)], [])).toBe(false);
    expect(await rows("staged_orders")).toEqual([]);
  });
});
