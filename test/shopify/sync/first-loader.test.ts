import { describe, expect, test } from "bun:test";
import { loadExclusively } from "../../../src/shopify/sync/exclusive-load.ts";
import { type ConnectedShop, connected, DOMAIN, HOUR_MS, seeded } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import { seemLarge } from "../../support/large-shop.ts";

const MINUTE_MS = 60_000;

const runOnce = ({ test: { app } }: ConnectedShop) => app.firstLoader.runOnce();
const rows = async ({ shop }: ConnectedShop) => (await shop.all("subscriptions")).length;
const stateOf = ({ test: { app, clock }, shop }: ConnectedShop) => app.store.syncs.loadState(shop.shop.id, clock.ms);

/** Makes the platform hold all answers about contracts. */
function holdContracts(all: ConnectedShop) {
  const gate = Promise.withResolvers<void>();
  let held = 0;
  all.platform.fault = ({ operation }) => {
    if (operation !== "AllContracts") return undefined;
    held += 1;
    return { until: gate.promise };
  };
  return { open: () => gate.resolve(), held: () => held };
}

describe("the first load of a connected shop", () => {
  test("begins by itself, queues nothing, and is done once", async () => {
    const all = await seeded({ contracts: 3, renewals: 1 });
    await all.queueAllEvents();
    await runOnce(all);
    expect(await rows(all)).toBe(3);
    expect(await all.queuedTopics()).toEqual([]);
    expect(all.logged("loaded the shop")).toMatchObject([{ shop: DOMAIN, subscriptions: 3, events: 0 }]);
    const requests = all.platform.requests.length;
    await runOnce(all);
    expect(all.platform.requests).toHaveLength(requests);
    all.test.clock.ms += HOUR_MS;
    await all.test.app.reconciler.runOnce();
    expect(all.logged("reconciled the mirror")).toHaveLength(1);
  });

  test("queues events of contracts that were made since the shop was connected", async () => {
    const all = await seeded({ contracts: 2 });
    await all.queueAllEvents();
    await all.test.app.platform.connect(DOMAIN, { kind: "client_credentials" });
    all.test.clock.ms += 2_000;
    all.createContract();
    all.remote.outgoing.splice(0);
    all.test.clock.ms += MINUTE_MS;
    await runOnce(all);
    expect(await rows(all)).toBe(3);
    expect(await all.queuedTopics()).toEqual(["subscription.created", "order.charged"]);
  });

  test("reads the currency first, because a shop may be connected without it", async () => {
    const all = await seeded({ contracts: 1 });
    const { shops } = all.test.app.store;
    await shops.set(DOMAIN, { currency: "JPY" });
    await runOnce(all);
    expect((await shops.find(DOMAIN))?.currency).toBe(all.remote.currency);
    expect(await rows(all)).toBe(1);
  });

  test("continues where it was interrupted, after a minute", async () => {
    const all = await seeded({ contracts: 52 });
    all.remote.maxPageRows = 25;
    all.platform.fault = ({ operation, n }) => (operation === "AllContracts" && n > 1 ? { status: 400 } : undefined);
    await runOnce(all);
    expect(all.logged("cannot load a shop")).toMatchObject([{ waitMs: MINUTE_MS }]);
    const { holder, progress } = (await stateOf(all)) ?? {};
    expect([holder, progress?.stage, progress?.error]).toEqual([null, "subscriptions", expect.stringContaining("400")]);
    all.platform.fault = () => undefined;
    const begun = all.platform.requests.length;
    all.test.clock.ms += MINUTE_MS - 1;
    await runOnce(all);
    expect(all.platform.requests).toHaveLength(begun);
    all.test.clock.ms += 1;
    await runOnce(all);
    expect(await rows(all)).toBe(52);
    expect(all.operations(begun)).not.toContain("AllCustomers");
    expect((await stateOf(all))?.progress).toMatchObject({ counts: { subscriptions: 52 } });
  });

  test("of a shop that the platform refuses waits an hour, or for a new connection", async () => {
    const all = await seeded({ contracts: 1 });
    all.remote.setAccess("locked");
    await runOnce(all);
    all.remote.setAccess("open");
    const requests = all.platform.requests.length;
    all.test.clock.ms += HOUR_MS - 1;
    await runOnce(all);
    expect(all.platform.requests).toHaveLength(requests);
    await all.test.app.platform.connect(DOMAIN, { kind: "client_credentials" });
    await runOnce(all);
    expect(await rows(all)).toBe(1);
  });

  test("ends when the shop uninstalls the app, and goes on when it installs the app again", async () => {
    const all = await seeded({ contracts: 3 });
    const { connections } = all.test.app.store;
    const { open, held } = holdContracts(all);
    const running = runOnce(all);
    await eventually(() => held() > 0);
    await connections.uninstall(all.shop.shop.id, all.test.clock.ms + 1);
    open();
    await running;
    await runOnce(all);
    expect(await rows(all)).toBe(0);
    await all.test.app.platform.connect(DOMAIN, { kind: "client_credentials" });
    await runOnce(all);
    expect(await rows(all)).toBe(3);
  });

  test("is claimed for 15 s at a time, so that another process can continue soon after a crash", async () => {
    const all = await seeded({ contracts: 3 });
    const { open, held } = holdContracts(all);
    const running = runOnce(all);
    await eventually(() => held() > 0);
    const holderAfter = async (ms: number) => {
      const { app, clock } = all.test;
      return (await app.store.syncs.loadState(all.shop.shop.id, clock.ms + ms))?.holder;
    };
    expect(await holderAfter(14_999)).toBeString();
    expect(await holderAfter(15_000)).toBeNull();
    open();
    await running;
  });

  test("is left to a process that does it already, and continues when that process has died", async () => {
    const all = await seeded({ contracts: 3 });
    const { syncs } = all.test.app.store;
    const { ms } = all.test.clock;
    const claim = { now: ms, until: ms + 15_000 };
    await syncs.claimLoad(all.shop.shop.id, { ...claim, holder: "another-machine 1 a" });
    await runOnce(all);
    expect(await rows(all)).toBe(0);
    all.test.clock.ms += 15_000;
    await runOnce(all);
    expect(await rows(all)).toBe(3);
  });

  test("happens for four shops at the same time, while other shops' webhooks are processed", async () => {
    const all = await connected();
    const { platform } = all.test.app;
    await all.load();
    for (let n = 0; n < 6; n += 1) {
      const domain = `shop-${n}.myshopify.com`;
      all.platform.addShop(domain).seed({ contracts: 1 });
      await platform.connect(domain, { kind: "client_credentials" });
    }
    const { open, held } = holdContracts(all);
    const { firstLoader } = all.test.app;
    await firstLoader.begin();
    await firstLoader.begin();
    await eventually(() => held() === 4);
    all.createContract();
    await all.deliverAll();
    expect(await rows(all)).toBe(1);
    open();
    await firstLoader.runOnce();
    await firstLoader.runOnce();
    expect(held()).toBe(6);
  });

  test("stops at once while a bulk operation runs, and keeps the operation for the next start", async () => {
    const all = await seeded({ contracts: 3 });
    all.remote.bulk.behaviour.delayMs = null;
    seemLarge(all);
    const running = runOnce(all);
    await eventually(() => all.operations().includes("BulkOperation"));
    await Promise.all([all.test.app.platform.stop(), all.test.app.firstLoader.stop()]);
    await running;
    const run = await all.test.app.store.syncs.unfinished(all.shop.shop.id, "full");
    expect(run?.bulk?.customers?.operation).toStartWith("gid://");
    expect((await stateOf(all))?.holder).toBeNull();
  });
});

test("a load by command is refused while another process loads the shop, and shows its progress", async () => {
  const all = await seeded({ contracts: 3 });
  const { app, clock } = all.test;
  const { open, held } = holdContracts(all);
  const running = runOnce(all);
  await eventually(() => held() > 0);
  const services = { ...app.store, ...app.platform, clock: clock.monotonic };
  expect(await loadExclusively(services, all.shop.shop, { events: false })).toBeUndefined();
  await eventually(async () => (await stateOf(all))?.progress.stage === "customers");
  expect(await stateOf(all)).toMatchObject({ holder: expect.any(String) });
  open();
  await running;
  expect(await stateOf(all)).toMatchObject({ holder: null, progress: { counts: { subscriptions: 3 } } });
});
