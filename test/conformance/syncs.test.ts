import { describe, expect, test } from "bun:test";
import { NO_COUNTS, type SyncRun } from "../../src/domain/platform/sync.ts";
import { START } from "../support/app.ts";
import { engines, storeWithShop, storeWithTwoShops } from "./engines.ts";
import { expectConflict, removeShop } from "./fixtures.ts";

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

  test("of a shop that was removed is refused", async () => {
    const { store, shop } = await storeWithShop(engine);
    await removeShop(store, shop.domain);
    await expectConflict(
      store.syncs.save(shop.id, "full", run()),
      store.syncs.complete(shop.id, "full", START, 0, START),
    );
  });
});
