import { expect, test } from "bun:test";
import { createLog } from "../../../src/lib/log.ts";
import { createRecordWriter } from "../../../src/mirror/record-writer.ts";
import { cancelUninstalled } from "../../../src/shopify/sync/uninstalled.ts";
import { connected, DOMAIN, HOUR_MS } from "../../support/connected.ts";

/** A connected shop whose contracts are active, paused and expired. All its events were queued before. */
async function loadedShop() {
  const all = await connected();
  const { remote, test, shop } = all;
  await all.queueAllEvents();
  const [active, paused, expired] = [all.createContract(), all.createContract(), all.createContract()];
  remote.pause(paused);
  remote.expire(expired);
  await all.deliverAll();
  await all.load();
  test.clock.ms += HOUR_MS;
  const { store } = test.app;
  const recordWriter = createRecordWriter(store.mirror, test.clock.now);
  const parts = async () => (await all.shop.all("subscriptions")) as { shopifyId: string; status: string }[];
  return {
    ...all,
    active,
    uninstall: async () => {
      remote.uninstall();
      await all.deliverAll();
      return test.clock.now();
    },
    cancel: (submit = recordWriter.submit) =>
      cancelUninstalled({
        ...store,
        recordWriter: { submit },
        now: test.clock.now,
        log: createLog("warn", { write: () => true }, test.clock.now),
      }),
    subscriptions: parts,
    statuses: async () => (await parts()).map(({ status }) => status).toSorted(),
    installAgain: async () => {
      remote.install();
      await test.app.platform.connect(DOMAIN, { kind: "client_credentials" });
    },
    reconcile: () => test.app.platform.synchronizer.reconcile(shop.shop),
  };
}

const BEFORE = ["ACTIVE", "EXPIRED", "PAUSED"];
const AFTER = ["CANCELLED", "CANCELLED", "EXPIRED"];

test("two days after the shop uninstalled the app, its contracts are mirrored as cancelled, without events", async () => {
  const all = await loadedShop();
  const uninstalledAt = await all.uninstall();
  const queued = await all.queuedTopics();
  all.test.clock.ms += 48 * HOUR_MS - 1;
  await all.cancel();
  expect(await all.statuses()).toEqual(BEFORE);
  all.test.clock.ms += 1;
  await all.cancel();
  expect(await all.statuses()).toEqual(AFTER);
  expect((await all.subscriptions()).find(({ shopifyId }) => shopifyId === all.active)).toMatchObject({
    nextBillingDate: null,
    cancelledAt: new Date(uninstalledAt + 48 * HOUR_MS).toISOString(),
  });
  expect(await all.queuedTopics()).toEqual(queued);
});

test("after a failed commit, the cancellation continues with the next call, and then ends", async () => {
  const all = await loadedShop();
  await all.uninstall();
  all.test.clock.ms += 48 * HOUR_MS;
  await expect(all.cancel(() => Promise.reject(new Error("disk I/O error")))).rejects.toThrow("disk I/O error");
  expect(await all.statuses()).toEqual(BEFORE);
  await all.cancel();
  expect(await all.statuses()).toEqual(AFTER);
  await all.cancel(() => Promise.reject(new Error("it was called")));
});

test("an app that is installed again within two days changes nothing, and gets the events that it missed", async () => {
  const all = await loadedShop();
  await all.uninstall();
  const queued = await all.queuedTopics();
  all.test.clock.ms += HOUR_MS;
  all.createContract();
  all.test.clock.ms += HOUR_MS;
  all.remote.outgoing.length = 0;
  await all.installAgain();
  all.test.clock.ms += 48 * HOUR_MS;
  await all.cancel();
  expect(await all.statuses()).toEqual(BEFORE);
  await all.reconcile();
  expect((await all.queuedTopics()).slice(queued.length)).toContain("subscription.created");
  expect(await all.statuses()).toEqual(["ACTIVE", ...BEFORE]);
});

test("an app that is installed again after two days queues each event once", async () => {
  const all = await loadedShop();
  await all.uninstall();
  all.test.clock.ms += 49 * HOUR_MS;
  await all.cancel();
  all.remote.cancelAll();
  all.remote.outgoing.length = 0;
  const queued = await all.queuedTopics();
  await all.installAgain();
  await all.reconcile();
  await all.load({ events: true });
  expect(await all.queuedTopics()).toEqual(queued);
  expect(await all.statuses()).toEqual(AFTER);
  all.createContract();
  await all.deliverAll();
  await all.reconcile();
  const topics = (await all.queuedTopics()).slice(queued.length);
  expect(topics.filter((topic) => topic === "subscription.created")).toHaveLength(1);
});

test("a shop that is connected again after two days is loaded, because the platform may have cancelled nothing", async () => {
  const all = await loadedShop();
  const { app, clock } = all.test;
  await all.uninstall();
  clock.ms += HOUR_MS;
  all.remote.install();
  clock.ms += HOUR_MS;
  all.createContract();
  all.remote.outgoing.length = 0;
  clock.ms += 48 * HOUR_MS;
  await all.cancel();
  expect(await all.statuses()).toEqual(AFTER);
  const queued = await all.queuedTopics();
  await all.installAgain();
  for (let run = 0; run < 2; run += 1) {
    await app.reconciler.runOnce();
    await app.firstLoader.runOnce();
    clock.ms += HOUR_MS;
  }
  expect(await all.statuses()).toEqual(["ACTIVE", ...BEFORE]);
  expect((await all.queuedTopics()).slice(queued.length)).toEqual(["subscription.created", "order.charged"]);
});
