import { describe, expect, test } from "bun:test";
import { nextTurn } from "../../src/lib/waits.ts";
import type { Claim } from "../../src/store/port/deliveries.ts";
import { START } from "../support/app.ts";
import { reward, subscription } from "../support/records.ts";
import { claim, end, event, fill, queueRewards } from "./delivery-fixtures.ts";
import { engines, storeWithEvents, storeWithShop } from "./engines.ts";
import { addShop, commit, expectConflict, HOUR, removeShop, shopWithEvents, URL } from "./fixtures.ts";

describe.each(engines())("$name: dead deliveries", (engine) => {
  test("are counted and retried by kind and by when they were queued", async () => {
    const { store, rows } = await engine.open();
    const [shop, other] = [await shopWithEvents(store), await shopWithEvents(store, "other")];
    for (const each of [shop, other]) {
      for (const n of [1, 2, 3]) await commit(store, each, [subscription(n)], START + n);
      await end(store, each, "dead", START + 3);
      await commit(store, each, [reward("r"), subscription(8)], START + 4);
      await end(store, each, "delivered", START + 4);
    }
    const { deliveries } = store;
    const counts = (since: number) =>
      Promise.all([
        deliveries.countDead(shop.id, since),
        deliveries.countDead(shop.id, since, "webhook"),
        deliveries.countDead(shop.id, since, "trigger"),
      ]);
    expect(await counts(0)).toEqual([6, 3, 3]);
    expect(await counts(START + 2)).toEqual([4, 2, 2]);
    expect(await counts(START + 4)).toEqual([0, 0, 0]);

    expect(await deliveries.retryDead(shop.id, START + 3, START + 50, "trigger")).toBe(1);
    expect(await counts(0)).toEqual([5, 3, 2]);
    const queued = (await rows("deliveries")).filter(({ status }) => status === "pending");
    expect(queued).toMatchObject([
      {
        shop_id: shop.id,
        kind: "trigger",
        created_at: START + 3,
        round: 0,
        attempts: 1,
        next_attempt_at: START + 50,
        claimable_at: START + 50,
        lease: null,
        ended_at: null,
      },
    ]);

    expect(await deliveries.retryDead(shop.id, 0, START + 60)).toBe(5);
    expect(await counts(0)).toEqual([0, 0, 0]);
    expect(await deliveries.retryDead(shop.id, 0, START + 60)).toBe(0);
    expect(await deliveries.countDead(other.id, 0)).toBe(6);
    expect(await deliveries.list(shop.id, { limit: 20, status: "delivered" })).toHaveLength(4);
    expect(await claim(store, shop, { now: START + 60 })).toHaveLength(6);
  });

  test("are retried once each, even more than 1,000, and pruned when delivered", async () => {
    const { store, shop } = await storeWithEvents(engine);
    const ids = Array.from({ length: 2_100 }, (_, n) => n);
    await queueRewards(store, shop, ids);
    await end(store, shop, "dead");
    expect(await store.deliveries.countDead(shop.id, 0, "webhook")).toBe(2_100);
    const retrying = store.deliveries.retryDead(shop.id, 0, START + 1);
    let deadAgain: Claim[] = [];
    while (deadAgain.length === 0) deadAgain = await end(store, shop, "dead", START + 1, 1);
    expect(await retrying).toBe(2_100);
    expect(await store.deliveries.countDead(shop.id, 0)).toBe(1);
    expect(await end(store, shop, "delivered", START + 1)).toHaveLength(2_099);
    await store.deliveries.prune(START + HOUR, 0);
    expect((await store.deliveries.list(shop.id, { limit: 10 })).map(({ id, status }) => [id, status])).toEqual([
      [deadAgain[0]?.id ?? "", "dead"],
    ]);
  });
});

describe.each(engines())("$name: dead deliveries that two processes retry at once", (engine) => {
  test("are retried once each, and deliveries under way keep their lease", async () => {
    const { store, reopen, rows } = await engine.open();
    const other = await reopen();
    const shop = await shopWithEvents(store);
    await queueRewards(store, shop, [...Array(900).keys()]);
    await end(store, shop, "dead");
    const claims: Claim[] = [];
    let isRetrying = true;
    const claiming = (async () => {
      for (; isRetrying; await nextTurn()) claims.push(...(await claim(store, shop, { now: START + 1, share: 50 })));
    })();
    const counts = await Promise.all(
      [store, other].map(({ deliveries }) => deliveries.retryDead(shop.id, 0, START + 1)),
    );
    isRetrying = false;
    await claiming;
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(900);
    claims.push(...(await claim(store, shop, { now: START + 1 })));
    expect([claims.length, new Set(claims.map(({ id }) => id)).size]).toEqual([900, 900]);
    expect((await rows("deliveries")).every(({ lease }) => lease !== null)).toBe(true);
  });
});

describe.each(engines())("$name: a test event", (engine) => {
  test("is queued for any choice of topics, signed with the newest secret, and marked", async () => {
    const { store, rows } = await engine.open();
    const [other, shop] = [await shopWithEvents(store, "other"), await addShop(store)];
    await store.webhooks.set(shop.id, { url: URL }, START);
    for (let version = 2; version <= 10; version += 1) await store.webhooks.rotateSecret(shop.id, START);
    const id = await store.deliveries.queueTest(shop, event, START + 1);
    const created_at = "2026-03-01T12:00:00.001Z";
    const body = JSON.stringify({ id, topic: "order.charged", created_at, shop: shop.domain, data: { cents: 5 } });
    const listed = {
      id,
      kind: "webhook",
      topic: "order.charged",
      test: true,
      status: "pending",
      attempts: 0,
      nextAttemptAt: START + 1,
      createdAt: START + 1,
    };
    expect(await store.deliveries.list(shop.id, { limit: 5 })).toMatchObject([listed]);
    expect(await rows("deliveries")).toMatchObject([
      { id, shop_id: shop.id, test: true, body, secret_version: 10, claimable_at: START + 1 },
    ]);
    expect(await claim(store, shop, { now: START + 1 })).toMatchObject([{ id, body, secretVersion: 10, url: URL }]);
    expect(await store.deliveries.queueTest(other, event, START)).not.toBe(id);
  });

  test("is found if it is the shop's newest", async () => {
    const { store } = await engine.open();
    const [shop, other] = [await shopWithEvents(store), await shopWithEvents(store, "other")];
    expect(await store.deliveries.newestTest(shop.id)).toBeUndefined();
    const [, second] = [
      await store.deliveries.queueTest(shop, event, START + 1),
      await store.deliveries.queueTest(shop, event, START),
    ];
    await store.deliveries.queueTest(other, event, START + 2);
    await queueRewards(store, shop, [1]);
    expect(await store.deliveries.list(shop.id, { limit: 1, kind: "webhook" })).toMatchObject([{ test: false }]);
    expect(await store.deliveries.newestTest(shop.id)).toBe(second);
  });

  test("of a shop that was removed is refused", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    await removeShop(store, shop.domain);
    await expectConflict(store.deliveries.queueTest(shop, event, START));
    expect(await rows("deliveries")).toEqual([]);
  });
});

describe.each(engines())("$name: pruning deliveries", (engine) => {
  test("removes what was delivered before a time, with its attempts, in every shop, and keeps the rest", async () => {
    const { store, rows } = await engine.open();
    const shops = [
      await shopWithEvents(store, "alpha"),
      await shopWithEvents(store, "beta"),
      await addShop(store, "idle"),
    ];
    for (const shop of shops.slice(0, 2)) {
      await fill(store, shop);
      await queueRewards(store, shop, ["later"], START + 10);
      await end(store, shop, "delivered", START + 10);
    }
    const before = await rows("deliveries");
    const attempts = await rows("attempts");
    // The first deliveries ended at START + 5.
    await store.deliveries.prune(START + 5, 0);
    expect(await rows("deliveries")).toEqual(before);
    await store.deliveries.prune(START + 6, 0);
    const isForgotten = ({ status, ended_at }: Record<string, unknown>) =>
      status === "delivered" && ended_at === START + 5;
    expect(await rows("deliveries")).toEqual(before.filter((row) => !isForgotten(row)));
    const forgotten = new Set(before.filter(isForgotten).map(({ number }) => number));
    expect(forgotten.size).toBe(4);
    expect(await rows("attempts")).toEqual(attempts.filter(({ delivery }) => !forgotten.has(delivery)));
  });
});
