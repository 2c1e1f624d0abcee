import { describe, expect, test } from "bun:test";
import { START } from "../support/app.ts";
import { subscription } from "../support/records.ts";
import {
  claim,
  claimOne,
  claimShares,
  dueShopIds,
  failed,
  LEASE,
  queueRewards,
  record,
  succeeded,
} from "./delivery-fixtures.ts";
import { engines, storeInTwoProcesses, storeWithEvents, storeWithTwoShops } from "./engines.ts";
import { chooseAllEvents, commit, HOUR, removeShop, shopWithEvents, URL } from "./fixtures.ts";

describe.each(engines())("$name: shops with something to attempt", (engine) => {
  test("are the shops with a due attempt, ordered by id", async () => {
    const { store } = await engine.open();
    const [first, second] = [await shopWithEvents(store, "c"), await shopWithEvents(store, "b")];
    const [third] = [await shopWithEvents(store, "a"), await shopWithEvents(store, "idle")];
    expect(await dueShopIds(store, START)).toEqual([]);
    for (const [shop, at] of [
      [first, 2],
      [third, 1],
      [second, 5],
      [second, 1],
    ] as const)
      await queueRewards(store, shop, [at], START + at);
    expect(await dueShopIds(store, START)).toEqual([]);
    expect(await dueShopIds(store, START + 1)).toEqual([second.id, third.id]);
    expect(await dueShopIds(store, START + 2)).toEqual([first.id, second.id, third.id]);
    await claim(store, third, { now: START + 2 });
    expect(await dueShopIds(store, START + 2)).toEqual([first.id, second.id]);
    expect(await dueShopIds(store, START + 2 + LEASE)).toEqual([first.id, second.id, third.id]);
  });
});

describe.each(engines())("$name: claiming deliveries", (engine) => {
  test("gives each shop its share, beginning with the longest due", async () => {
    const { store } = await engine.open();
    const [alpha, beta] = [await shopWithEvents(store, "alpha"), await shopWithEvents(store, "beta")];
    const gamma = await shopWithEvents(store, "gamma");
    for (const n of [3, 1, 2]) await queueRewards(store, alpha, [n], START + n);
    await queueRewards(store, beta, ["b1", "b2"]);
    await queueRewards(store, gamma, ["g1"]);
    const shares = [[alpha, 2] as const, [beta, 1] as const, [gamma, 0] as const];
    const claims = await claimShares(store, shares, START + 3);
    const countOf = (shopId: number) => claims.filter((each) => each.shopId === shopId).length;
    expect([alpha, beta, gamma].map(({ id }) => countOf(id))).toEqual([2, 1, 0]);
    const times = claims.filter(({ shopId }) => shopId === alpha.id).map(({ body }) => JSON.parse(body).created_at);
    expect(times.sort()).toEqual([1, 2].map((n) => new Date(START + n).toISOString()));
    expect(await claim(store, alpha, { now: START + 2 })).toEqual([]);
  });

  test("gives what an attempt needs, with the URL that the shop has now", async () => {
    const { store, rows, shop, other } = await storeWithTwoShops(engine);
    await chooseAllEvents(store, shop);
    await store.webhooks.set(other.id, { url: "https://other.example.com" }, START);
    await store.webhooks.rotateSecret(shop.id, START, HOUR);
    await commit(store, shop, [subscription(1)]);
    const [webhook, trigger] = await rows("deliveries");
    await store.webhooks.set(shop.id, { url: `${URL}/new` }, START);
    const claims = await claim(store, shop);
    const shared = {
      shopId: shop.id,
      domain: shop.domain,
      attempts: 0,
      round: 0,
      url: `${URL}/new`,
      test: false,
      newestSecret: { version: 2, overlapEndsAt: START + HOUR },
      lease: expect.stringMatching(/^.{10,}$/),
    };
    const expected = [webhook, trigger].map((row) => ({
      id: row?.["id"],
      number: row?.["number"],
      kind: row?.["kind"],
      topic: row?.["topic"],
      body: row?.["body"],
      ...shared,
    }));
    expect(claims).toEqual([
      { ...expected[0], secretVersion: 2 },
      { ...expected[1], secretVersion: 0 },
    ] as typeof claims);
  });

  test("marks test events, also after a retry by hand", async () => {
    const { store, shop } = await storeWithEvents(engine);
    const id = await store.deliveries.queueTest(shop, { topic: "order.failed", data: {} }, START);
    const first = await claimOne(store, shop);
    expect(first).toMatchObject({ id, test: true });
    await record(store, [failed(first)], []);
    await store.deliveries.retry(shop.id, id, START + 1);
    await queueRewards(store, shop, [1], START + 1);
    expect((await claim(store, shop, { now: START + 1 })).map(({ test }) => test)).toEqual([true, false]);
  });

  test("names the newest secret of each shop, whatever signed the delivery", async () => {
    const { store, reopen } = await engine.open();
    const [alpha, beta] = [await shopWithEvents(store, "alpha"), await shopWithEvents(store, "beta")];
    for (const shop of [alpha, beta]) await queueRewards(store, shop, [1]);
    const other = await reopen();
    for (let version = 2; version <= 11; version += 1)
      await other.webhooks.rotateSecret(alpha.id, START + version, version % 2 === 1 ? HOUR : 0);
    const claims = await claimShares(store, [[alpha, 5] as const, [beta, 5] as const]);
    expect(claims).toMatchObject([
      { shopId: alpha.id, secretVersion: 1, newestSecret: { version: 11, overlapEndsAt: START + 11 + HOUR } },
      { shopId: beta.id, secretVersion: 1, newestSecret: { version: 1, overlapEndsAt: null } },
    ]);
  });

  test("gives deliveries of the asked kind, whatever waits in the shop's other queue", async () => {
    const { store, shop } = await storeWithEvents(engine);
    // Each contract queues a webhook and a trigger.
    await commit(store, shop, [subscription(1), subscription(2), subscription(3)]);
    const queues = (["trigger", "webhook"] as const).map((kind) => ({ shopId: shop.id, kind }));
    expect(await store.deliveries.dueQueues(START)).toEqual(queues);
    const asked = queues.map((queue) => ({ ...queue, count: queue.kind === "webhook" ? 2 : 9 }));
    const { claimed } = await store.deliveries.recordAndClaim([], asked, START, START + LEASE, []);
    expect(claimed.map(({ kind }) => kind)).toEqual(["trigger", "trigger", "trigger", "webhook", "webhook"]);
    expect(await store.deliveries.dueQueues(START)).toEqual(queues.slice(1));
  });

  test("finds every shop with due deliveries, even if one shop has a thousand", async () => {
    const { store } = await engine.open();
    const [many, few] = [await shopWithEvents(store, "many"), await shopWithEvents(store, "few")];
    const ids = Array.from({ length: 1_100 }, (_, index) => index);
    await queueRewards(store, many, ids);
    await queueRewards(store, few, [1], START + 1);
    expect(await dueShopIds(store, START)).toEqual([many.id]);
    expect(await dueShopIds(store, START + 1)).toEqual([many.id, few.id]);
  });

  test("gives null as URL if the shop no longer has a URL", async () => {
    const { store, shop } = await storeWithEvents(engine);
    await queueRewards(store, shop, [1, 2]);
    await store.webhooks.set(shop.id, { url: null }, START);
    expect((await claim(store, shop, { share: 1 })).map(({ url }) => url)).toEqual([null]);
    await store.webhooks.clear(shop.id);
    expect((await claim(store, shop)).map(({ url }) => url)).toEqual([null]);
  });

  test("gives a delivery to one process until its lease ends, and then again", async () => {
    const { store, second: other, shop } = await storeInTwoProcesses(engine);
    await chooseAllEvents(store, shop);
    await queueRewards(store, shop, [1]);
    const first = await claimOne(store, shop);
    for (const now of [START, START + LEASE - 1]) expect(await claim(other, shop, { now })).toEqual([]);
    const second = await claimOne(other, shop, { now: START + LEASE });
    expect(second.id).toBe(first.id);
    expect(second.lease).not.toBe(first.lease);
  });

  test("by two processes at once gives each delivery to one of them", async () => {
    const { store, second: other, shop } = await storeInTwoProcesses(engine);
    await chooseAllEvents(store, shop);
    await queueRewards(store, shop, [...Array(30).keys()]);
    const claims = await Promise.all([store, other, store, other].map((each) => claim(each, shop, { share: 9 })));
    const ids = claims.flat().map(({ id }) => id);
    expect([ids.length, new Set(ids).size]).toEqual([30, 30]);
  });

  test("comes after the ended attempts are recorded, so that a delivery that is due again can be claimed", async () => {
    const { store, shop } = await storeWithEvents(engine);
    await queueRewards(store, shop, [1]);
    const first = await claimOne(store, shop);
    const again = await claimOne(store, shop, { now: START + 1_000, ended: [failed(first)] });
    expect(again.id).toBe(first.id);
    expect(await store.deliveries.show(shop.id, first.id)).toMatchObject({ status: "retrying", attempts: 1 });
  });

  test("gives no delivery of a removed shop", async () => {
    const { store, shop } = await storeWithEvents(engine);
    await queueRewards(store, shop, [1]);
    const ended = [succeeded(await claimOne(store, shop))];
    await removeShop(store, shop.domain);
    expect(await dueShopIds(store, START + 2 * LEASE)).toEqual([]);
    expect(await claim(store, shop, { now: START + 2 * LEASE, ended })).toEqual([]);
  });
});
