import { expect, test } from "bun:test";
import { NO_COUNTS } from "../../../src/domain/platform/sync.ts";
import { createLog } from "../../../src/lib/log.ts";
import { nextTurn } from "../../../src/lib/waits.ts";
import { createReconciler } from "../../../src/shopify/sync/reconciler.ts";
import type { Store } from "../../../src/store/port/store.ts";
import { StoreError } from "../../../src/store/port/store-error.ts";
import { TOKENS } from "../../conformance/fixtures.ts";
import { START, temporaryFolder } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { type ConnectedShop, connected, HOUR_MS, withContract } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import { openStoreIn } from "../../support/open-store.ts";

const MINUTE_MS = 60_000;

function lastRun({ test, shop }: ConnectedShop) {
  return test.app.store.syncs.lastComplete(shop.shop.id, "changes");
}

/** Makes a shop that was loaded just now. */
async function loaded() {
  const { all, contract } = await withContract();
  all.test.clock.ms += HOUR_MS;
  await all.load();
  return { ...all, contract, runOnce: () => all.test.app.reconciler.runOnce() };
}

test("a shop is reconciled every hour, counted from the start of its last run", async () => {
  const all = await loaded();
  all.test.clock.ms += HOUR_MS - 1;
  await all.runOnce();
  expect(await lastRun(all)).toBeUndefined();
  all.test.clock.ms += 1;
  all.remote.pause(all.contract);
  await all.runOnce();
  expect(await lastRun(all)).toMatchObject({ changed: 1, startedAt: all.test.clock.ms });
  expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "PAUSED" }]);
  all.test.clock.ms += HOUR_MS - 1;
  await all.runOnce();
  expect(await lastRun(all)).toMatchObject({ changed: 1 });
  all.test.clock.ms += 1;
  await all.runOnce();
  expect(await lastRun(all)).toMatchObject({ changed: 0 });
});

test("a load that is repeated delays no reconciliation, because it reads no changes of charged orders", async () => {
  const all = await loaded();
  all.test.clock.ms += HOUR_MS;
  await all.runOnce();
  all.remote.updateOrder(all.remote.originOrder(all.contract) ?? "", { lines: [{ title: "Tea", price: "3.00" }] });
  all.remote.outgoing.length = 0;
  for (const minutes of [30, 30]) {
    all.test.clock.ms += minutes * MINUTE_MS;
    await all.load();
  }
  await all.runOnce();
  expect(await all.shop.all("orders")).toMatchObject([{ totalCents: 300 }]);
});

test("a shop that was never loaded completely is not reconciled", async () => {
  const all = await connected();
  all.test.clock.ms += 2 * HOUR_MS;
  await all.test.app.reconciler.runOnce();
  expect(await lastRun(all)).toBeUndefined();
  expect(all.test.logged.join("")).not.toContain("reconcile");
});

test("a shop whose last run is dated in the future, because the clock was set back, is due", async () => {
  const all = await loaded();
  all.test.clock.ms -= 1;
  await all.runOnce();
  expect(await lastRun(all)).toBeDefined();
});

test("a load by a clock that was ahead does not make a shop due in every round", async () => {
  const all = await loaded();
  all.test.clock.step(-72 * HOUR_MS);
  await all.runOnce();
  const begun = await lastRun(all);
  all.test.clock.ms += HOUR_MS - 1;
  await all.runOnce();
  expect(await lastRun(all)).toEqual(begun);
  all.test.clock.ms += 1;
  await all.runOnce();
  expect(await lastRun(all)).toMatchObject({ startedAt: all.test.clock.ms });
});

test("a failed run is repeated after five minutes", async () => {
  const all = await loaded();
  all.test.clock.ms += HOUR_MS;
  all.platform.fault = () => ({ status: 400 });
  await all.runOnce();
  expect(all.logged("cannot reconcile a mirror")).toMatchObject([{ waitMs: 5 * MINUTE_MS }]);
  all.platform.fault = () => undefined;
  all.test.clock.ms += 5 * MINUTE_MS - 1;
  await all.runOnce();
  expect(await lastRun(all)).toBeUndefined();
  all.test.clock.ms += 1;
  await all.runOnce();
  expect(await lastRun(all)).toBeDefined();
});

test("a run that the platform refuses is repeated after an hour", async () => {
  const all = await loaded();
  all.test.clock.ms += HOUR_MS;
  all.remote.setAccess("locked");
  await all.runOnce();
  const requests = all.platform.requests.length;
  all.test.clock.ms += HOUR_MS - 1;
  await all.runOnce();
  expect(all.platform.requests).toHaveLength(requests);
  all.remote.setAccess("open");
  all.test.clock.ms += 1;
  await all.runOnce();
  expect(await lastRun(all)).toBeDefined();
});

test("a run that ends because another node has taken over the shop is not a failure", async () => {
  const all = await loaded();
  all.test.clock.ms += HOUR_MS;
  const { shops, syncs } = all.test.app.store;
  const logged: string[] = [];
  let isOwn = true;
  let underWay = 0;
  const runs: number[] = [];
  const reconciler = createReconciler({
    shops,
    syncs,
    synchronizer: {
      async reconcile() {
        runs.push(underWay);
        isOwn = false;
        throw new StoreError("conflict", new Error("another node has taken over the work for the shop"));
      },
    },
    membership: {
      mayBegin: () => isOwn,
      beginAlways() {
        underWay += 1;
        return () => {
          underWay -= 1;
        };
      },
    },
    now: all.test.clock.now,
    clock: all.test.clock.now,
    log: createLog("debug", { write: (text) => logged.push(text) }, all.test.clock.now),
  });
  await reconciler.runOnce();
  isOwn = true;
  await reconciler.runOnce();
  expect([runs, logged]).toEqual([[1, 1], []]);
});

test("a failure of the database is logged, and the next round goes on", async () => {
  const all = await loaded();
  const { syncs } = all.test.app.store;
  all.test.clock.ms += HOUR_MS;
  const { unreconciled } = syncs;
  syncs.unreconciled = () => Promise.reject(new Error("disk I/O error"));
  await all.runOnce();
  expect(all.test.logged.join("")).toContain("disk I/O error");
  syncs.unreconciled = unreconciled;
  await all.runOnce();
  expect(await lastRun(all)).toBeDefined();
});

/** Makes 34 shops that are due. The platform answers no query of customers until the test calls `open`. */
async function manyDueShops() {
  const all = await connected();
  const { platform } = all.test.app;
  for (let n = 0; n < 34; n += 1) {
    const domain = `shop-${n}.myshopify.com`;
    all.platform.addShop(domain);
    const { shop } = await platform.connect(domain, { kind: "client_credentials" });
    await platform.synchronizer.load(shop, { events: false });
  }
  all.test.clock.ms += HOUR_MS;
  const gate = Promise.withResolvers<void>();
  let held = 0;
  all.platform.fault = ({ operation }) => {
    if (operation !== "Customers") return undefined;
    held += 1;
    return { until: gate.promise };
  };
  return { ...all, reconciler: all.test.app.reconciler, open: () => gate.resolve(), held: () => held };
}

test("32 shops are reconciled at the same time, each once, and the next ones as soon as one ends", async () => {
  const { reconciler, open, held } = await manyDueShops();
  await reconciler.begin();
  await reconciler.begin();
  await eventually(() => held() === 32);
  open();
  await eventually(() => held() === 34);
  await reconciler.runOnce();
  expect(held()).toBe(34);
});

test("a stop waits for the runs under way, and starts no further runs", async () => {
  const { reconciler, open, held } = await manyDueShops();
  await reconciler.begin();
  await eventually(() => held() === 32);
  let stopped = false;
  const stopping = reconciler.stop().then(() => {
    stopped = true;
  });
  await reconciler.begin();
  expect(stopped).toBe(false);
  open();
  await stopping;
  await reconciler.stop();
  await reconciler.runOnce();
  expect(held()).toBe(32);
});

/** Opens a database with shops that are connected and loaded. */
async function storeWithLoadedShops(count: number, now: number): Promise<Store> {
  const store = await openStoreIn(temporaryFolder());
  afterTest(() => store.close());
  for (let n = 0; n < count; n += 1) {
    const { id } = await store.shops.add({ domain: `shop-${n}.myshopify.com`, plan: "pro", currency: "USD" }, now);
    await store.connections.connect(id, "token", TOKENS, [], now);
    await store.syncs.complete(id, "full", now, 0, now);
  }
  return store;
}

test("each of 300 shops is reconciled every hour, also if runs take long", async () => {
  let at = START;
  const now = () => at;
  const store = await storeWithLoadedShops(300, at);
  const lastAt = new Map<number, number>();
  const gaps: number[] = [];
  const ends: (() => Promise<void>)[] = [];
  const reconciler = createReconciler({
    shops: store.shops,
    syncs: store.syncs,
    synchronizer: {
      async reconcile({ id }) {
        const startedAt = at;
        gaps.push(startedAt - (lastAt.get(id) ?? START));
        lastAt.set(id, startedAt);
        const { promise, resolve } = Promise.withResolvers<void>();
        ends.push(async () => {
          await store.syncs.complete(id, "changes", startedAt, 0, at);
          resolve();
        });
        await promise;
        return NO_COUNTS;
      },
    },
    membership: { mayBegin: () => true, beginAlways: () => () => undefined },
    now,
    clock: now,
    log: createLog("error", { write: () => undefined }, now),
  });
  for (; at < START + 4 * HOUR_MS; at += MINUTE_MS) {
    await reconciler.begin();
    // The runs that began before this minute end, so 32 shops are reconciled in a minute.
    for (const end of ends.splice(0)) await end();
    await nextTurn();
  }
  expect(lastAt.size).toBe(300);
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(HOUR_MS);
  // At first all shops are due at once. So the last shops wait up to 300 / 32 minutes longer.
  expect(Math.max(...gaps)).toBeLessThan(HOUR_MS + 11 * MINUTE_MS);
});
