import { expect, test } from "bun:test";
import { createLog } from "../../../src/lib/log.ts";
import { createReconciler } from "../../../src/shopify/sync/reconciler.ts";
import { StoreError } from "../../../src/store/port/store-error.ts";
import { type ConnectedShop, connected, HOUR_MS, withContract } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";

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
  const { shops, connections, syncs } = all.test.app.store;
  const logged: string[] = [];
  let isOwn = true;
  let underWay = 0;
  const runs: number[] = [];
  const reconciler = createReconciler({
    shops,
    connections,
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
  const { connections } = all.test.app.store;
  all.test.clock.ms += HOUR_MS;
  const { list } = connections;
  connections.list = () => Promise.reject(new Error("disk I/O error"));
  await all.runOnce();
  expect(all.test.logged.join("")).toContain("disk I/O error");
  connections.list = list;
  await all.runOnce();
  expect(await lastRun(all)).toBeDefined();
});

/** Makes ten shops that are due. The platform answers no query of customers until the test calls `open`. */
async function manyDueShops() {
  const all = await connected();
  const { platform } = all.test.app;
  for (let n = 0; n < 10; n += 1) {
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

test("eight shops are reconciled at the same time, each once, and others after them", async () => {
  const { reconciler, open, held } = await manyDueShops();
  await reconciler.begin();
  await reconciler.begin();
  await eventually(() => held() === 8);
  open();
  await reconciler.runOnce();
  await reconciler.runOnce();
  expect(held()).toBe(10);
});

test("a stop waits for the runs under way, and starts no further runs", async () => {
  const { reconciler, open, held } = await manyDueShops();
  await reconciler.begin();
  await eventually(() => held() === 8);
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
  expect(held()).toBe(8);
});
