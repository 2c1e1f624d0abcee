import { describe, expect, test } from "bun:test";
import { NO_COUNTS, type SyncRun } from "../../src/domain/platform/sync.ts";
import { START } from "../support/app.ts";
import { engines, storeWithShop, storeWithTwoShops } from "./engines.ts";
import { addShop, expectConflict, HOUR, removeShop, TOKENS } from "./fixtures.ts";

const run = (fields: Partial<SyncRun> = {}): SyncRun => ({
  startedAt: START,
  events: true,
  stage: "subscriptions",
  cursor: "abc",
  counts: { ...NO_COUNTS, customers: 3 },
  ...fields,
});

/** Makes a result of `lastComplete`. */
const completion = (startedAt: number | null, endedAt: number, changed: number) => ({ startedAt, endedAt, changed });

describe.each(engines())("$name: a sync", (engine) => {
  test("that was interrupted can continue where it stopped, separately for each kind and shop", async () => {
    const { store, reopen, shop, other } = await storeWithTwoShops(engine);
    await store.syncs.save(shop.id, "full", run());
    await store.syncs.save(shop.id, "full", run({ stage: "orders", cursor: null }));
    await store.syncs.save(shop.id, "changes", run({ events: false }));
    const { syncs } = await reopen();
    expect(await syncs.unfinished(shop.id, "full")).toEqual(run({ stage: "orders", cursor: null }));
    expect(await syncs.unfinished(shop.id, "changes")).toEqual(run({ events: false }));
    expect(await syncs.unfinished(other.id, "full")).toBeUndefined();
    expect(await syncs.lastComplete(shop.id, "full")).toBeUndefined();
  });

  test("that is completed has its time and the number of changes", async () => {
    const { store, shop } = await storeWithShop(engine);
    await store.syncs.save(shop.id, "full", run());
    await store.syncs.complete(shop.id, "full", START, 12, START + 50);
    expect(await store.syncs.unfinished(shop.id, "full")).toBeUndefined();
    expect(await store.syncs.lastComplete(shop.id, "full")).toEqual(completion(START, START + 50, 12));
    expect(await store.syncs.lastComplete(shop.id, "changes")).toBeUndefined();
    await store.syncs.save(shop.id, "full", run({ startedAt: START + 60 }));
    expect(await store.syncs.lastComplete(shop.id, "full")).toEqual(completion(START, START + 50, 12));
    await store.syncs.complete(shop.id, "full", START + 60, 0, START + 90);
    expect(await store.syncs.lastComplete(shop.id, "full")).toEqual(completion(START + 60, START + 90, 0));
  });

  test("that left a gap keeps the time up to which the mirror has everything", async () => {
    const { store, shop } = await storeWithShop(engine);
    await store.syncs.complete(shop.id, "changes", undefined, 1, START + 50);
    expect(await store.syncs.lastComplete(shop.id, "changes")).toEqual(completion(null, START + 50, 1));
    await store.syncs.complete(shop.id, "changes", START + 60, 2, START + 70);
    await store.syncs.complete(shop.id, "changes", undefined, 3, START + 80);
    expect(await store.syncs.lastComplete(shop.id, "changes")).toEqual(completion(START + 60, START + 80, 3));
  });

  test("is due for shops whose mirror is complete only up to a time, and the oldest comes first", async () => {
    const { store } = await engine.open();
    const add = async (name: string, loadedAt?: number, reconciledAt?: number, connectedAt = START) => {
      const shop = await addShop(store, name);
      await store.connections.connect(shop.id, "token", TOKENS, [], connectedAt);
      if (loadedAt !== undefined) await store.syncs.complete(shop.id, "full", loadedAt, 0, loadedAt);
      if (reconciledAt !== undefined) await store.syncs.complete(shop.id, "changes", reconciledAt, 0, reconciledAt);
      return { shopId: shop.id, connectedAt };
    };
    const now = START + 10 * HOUR;
    const old = await add("old", START + HOUR, START + 3 * HOUR);
    const older = await add("older", START + 2 * HOUR);
    const ahead = await add("ahead", now + 1, now + 2);
    const connectedSince = await add("since", START, now - 1, now);
    await add("fresh", START + HOUR, START + 3 * HOUR + 1);
    await add("never-loaded");
    expect(await store.syncs.unreconciled(START + 3 * HOUR, now)).toEqual([ahead, older, old, connectedSince]);
    expect(await store.syncs.unreconciled(0, now)).toEqual([ahead, connectedSince]);
  });

  test("of a shop that was removed is refused", async () => {
    const { store, shop } = await storeWithShop(engine);
    await removeShop(store, shop.domain);
    await expectConflict(
      store.syncs.save(shop.id, "full", run()),
      store.syncs.complete(shop.id, "full", START, 0, START),
    );
  });
});

describe.each(engines())("$name: the load of a shop", (engine) => {
  const claim = (holder: string, now = START) => ({ holder, now, until: now + 15_000 });

  test("is claimed by one process at a time, until that process ends its claim or dies", async () => {
    const { store, reopen, shop, other } = await storeWithTwoShops(engine);
    const { syncs } = await reopen();
    expect(await store.syncs.loadState(shop.id, START)).toBeUndefined();
    expect(await store.syncs.claimLoad(shop.id, claim("a"))).toBeTrue();
    expect(await syncs.claimLoad(shop.id, claim("b", START + 14_999))).toBeFalse();
    expect(await syncs.claimLoad(other.id, claim("b"))).toBeTrue();
    const progress = { stage: "customers", counts: NO_COUNTS, done: 0.5 } as const;
    expect(await store.syncs.keepLoad(shop.id, "a", START + 20_000, progress)).toBeTrue();
    expect(await syncs.loadState(shop.id, START + 19_999)).toEqual({ holder: "a", progress });
    expect(await syncs.loadState(shop.id, START + 20_000)).toEqual({ holder: null, progress });
    expect(await syncs.claimLoad(shop.id, claim("b", START + 20_000))).toBeTrue();
    expect(await store.syncs.keepLoad(shop.id, "a", START + 60_000, progress)).toBeFalse();
    await store.syncs.releaseLoad(shop.id, "a", progress);
    expect((await syncs.loadState(shop.id, START + 20_000))?.holder).toBe("b");
    expect(await store.syncs.claimLoad(shop.id, { ...claim("c", START + 20_000), deadHolder: "b" })).toBeTrue();
    await store.syncs.releaseLoad(shop.id, "c", { error: "HTTP 503" });
    expect(await syncs.loadState(shop.id, START)).toEqual({ holder: null, progress: { error: "HTTP 503" } });
  });

  test("can be claimed if the clock was set back since the last claim", async () => {
    const { store, shop } = await storeWithShop(engine);
    await store.syncs.claimLoad(shop.id, claim("a", START + 3_600_000));
    expect((await store.syncs.loadState(shop.id, START))?.holder).toBeNull();
    expect(await store.syncs.claimLoad(shop.id, claim("b"))).toBeTrue();
  });

  test("is to be done for connected shops that were never loaded completely", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    const unloaded = () => store.syncs.unloaded();
    expect(await unloaded()).toEqual([]);
    for (const [n, { id }] of [shop, other].entries())
      await store.connections.connect(id, "token", TOKENS, [], START + n);
    const both = [
      { shopId: shop.id, connectedAt: START },
      { shopId: other.id, connectedAt: START + 1 },
    ];
    expect(await unloaded()).toEqual(both);
    await store.syncs.save(shop.id, "full", run());
    await store.syncs.complete(shop.id, "changes", START, 1, START);
    expect(await unloaded()).toEqual(both);
    await store.syncs.complete(shop.id, "full", START, 1, START);
    expect(await unloaded()).toEqual(both.slice(1));
    await store.connections.uninstall(other.id, START + 5);
    expect(await unloaded()).toEqual([]);
  });
});
