import { describe, expect, test } from "bun:test";
import type { Shop } from "../../src/domain/shop.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { claim, failed, LEASE, queueRewards, record, succeeded, WAITS } from "./delivery-fixtures.ts";
import { engines } from "./engines.ts";
import { HOUR, receipt, receiveAll, receiveFailed, shopWithEvents, TOKENS } from "./fixtures.ts";

async function connect(store: Store, shop: Shop, at: number): Promise<void> {
  await store.connections.connect(shop.id, "token", TOKENS, [], at);
}

describe.each(engines())("$name: totals of all shops", (engine) => {
  test("are zero in an empty database", async () => {
    const { store } = await engine.open();
    expect(await store.totals.read(START)).toEqual({
      deliveries: { pending: 0, retrying: 0, dead: 0 },
      firstDueAt: null,
      inbox: { waiting: 0, failed: 0 },
      refusedShops: 0,
      reconciledAt: null,
    });
  });

  test("count deliveries by state, and say when the first one is due", async () => {
    const { store } = await engine.open();
    const [alpha, beta] = [await shopWithEvents(store, "alpha"), await shopWithEvents(store, "beta")];
    await queueRewards(store, alpha, [1, 2, 3], START);
    await queueRewards(store, beta, [4, 5], START - 5);
    const before = await store.totals.read(START);
    expect(before).toMatchObject({ deliveries: { retrying: 0, dead: 0 }, firstDueAt: START - 5 });
    const waiting = before.deliveries.pending;
    const [first, second, ...others] = await claim(store, alpha);
    if (first === undefined || second === undefined) throw new Error("too few deliveries");
    await claim(store, beta);
    await store.deliveries.recordAndClaim([failed(first)], [], START, START + LEASE, WAITS);
    await store.deliveries.recordAndClaim([failed(second)], [], START, START + LEASE, []);
    for (const each of others) await record(store, [succeeded(each)]);
    const after = await store.totals.read(START);
    expect(after.deliveries).toEqual({ pending: waiting - 2 - others.length, retrying: 1, dead: 1 });
    expect(after.firstDueAt).toBe(START + (WAITS[0] ?? 0));
  });

  test("count every row of long queues whose deliveries are due at the same time", async () => {
    const { store } = await engine.open();
    const shops = [await shopWithEvents(store, "alpha"), await shopWithEvents(store, "beta")];
    const ids = Array.from({ length: 700 }, (_, n) => n);
    for (const shop of shops) await queueRewards(store, shop, ids);
    const counts = await Promise.all(shops.map(({ id }) => store.deliveries.countWaiting(id)));
    const pending = counts.reduce((sum, each) => sum + each.pending, 0);
    expect(pending).toBe(1_400);
    expect((await store.totals.read(START)).deliveries.pending).toBe(pending);
    for (const shop of shops) {
      const results = (await claim(store, shop)).map((each) => failed(each));
      await store.deliveries.recordAndClaim(results, [], START, START + LEASE, []);
    }
    expect((await store.totals.read(START)).deliveries).toEqual({ pending: 0, retrying: 0, dead: pending });
  });

  test("count the inbox", async () => {
    const { store } = await engine.open();
    const [alpha, beta] = [await shopWithEvents(store, "alpha"), await shopWithEvents(store, "beta")];
    await receiveFailed(store, alpha, 2);
    for (const [shop, needsPlatform] of [
      [alpha, true],
      [alpha, false],
      [beta, true],
    ] as const)
      await receiveAll(
        store,
        Array.from({ length: 600 }, (_, n) =>
          receipt(shop, null, { subject: `${n}`, needsPlatform, isUrgent: n === 0 }),
        ),
      );
    expect((await store.totals.read(START)).inbox).toEqual({ waiting: 1_800, failed: 2 });
  });

  test("count refused connections, and find the mirror that waits longest", async () => {
    const { store } = await engine.open();
    const [alpha, beta, gamma] = [
      await shopWithEvents(store, "alpha"),
      await shopWithEvents(store, "beta"),
      await shopWithEvents(store, "gamma"),
    ];
    await connect(store, alpha, START);
    await connect(store, beta, START + HOUR);
    await connect(store, gamma, START + 5);
    const now = START + 9 * HOUR;
    expect(await store.totals.read(now)).toMatchObject({ refusedShops: 0, reconciledAt: START });
    await store.syncs.complete(alpha.id, "full", START + 2 * HOUR, 1, START + 3 * HOUR);
    await store.connections.setTrouble(gamma.id, "refused", now);
    expect(await store.totals.read(now)).toMatchObject({ refusedShops: 1, reconciledAt: START + HOUR });
    await store.syncs.complete(beta.id, "changes", START + 8 * HOUR, 0, START + 8 * HOUR);
    expect(await store.totals.read(now)).toMatchObject({ reconciledAt: START + 2 * HOUR });
  });
});
