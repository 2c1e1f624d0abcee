import { expect, test } from "bun:test";
import { createLog } from "../../src/lib/log.ts";
import { createRecordWriter } from "../../src/mirror/record-writer.ts";
import { openPlatform, type Platform } from "../../src/shopify/open-platform.ts";
import { START } from "../support/app.ts";
import { type ConnectedShop, connected, HOUR_MS } from "../support/connected.ts";

const PAUSE = ["pause", "PAUSED"] as const;
const ACTIVATE = ["activate", "ACTIVE"] as const;

/** Starts the program with a clock that is ahead of the platform's clock. Both clocks move together. */
async function ahead(aheadMs: number) {
  let now = () => START - aheadMs;
  const all = await connected({}, { now: () => now() });
  now = () => all.test.clock.ms - aheadMs;
  return all;
}

/** Opens the platform as a command does. No answer has shown the platform's time yet. */
function newCommand({ test, platform }: ConnectedShop): Platform {
  const settings = { platformUrl: platform.url, platformClientId: "client", platformSecretFile: null };
  const { monotonic: clock, now, sleep } = test.clock;
  const log = createLog("error", { write: () => undefined }, now);
  const recordWriter = createRecordWriter(test.app.store.mirror, now);
  return openPlatform(settings, test.app.store, recordWriter, { now, clock, fetch, sleep, log });
}

test("a change just after a reading is read, also after the first reading", async () => {
  const all = await ahead(60_000);
  const contract = all.createContract();
  await all.deliverAll();
  for (const [change, status] of [PAUSE, ACTIVATE, PAUSE]) {
    all.test.clock.ms += 5_000;
    all.remote[change](contract);
    await all.deliverAll();
    expect(await all.shop.all("subscriptions")).toMatchObject([{ status }]);
  }
});

test("a change after a load is found by the next hourly run, although its webhook was lost", async () => {
  const all = await ahead(2 * HOUR_MS);
  const contract = all.createContract();
  await newCommand(all).synchronizer.load(all.shop.shop, { events: false });
  for (const [change, status] of [PAUSE, ACTIVATE]) {
    all.test.clock.ms += 60_000;
    all.remote[change](contract);
    all.remote.outgoing.length = 0;
    all.test.clock.ms += HOUR_MS;
    await all.test.app.reconciler.runOnce();
    expect(await all.shop.all("subscriptions")).toMatchObject([{ status }]);
  }
});

test("changes after the shop was connected queue their events", async () => {
  const all = await ahead(HOUR_MS);
  await all.queueAllEvents();
  all.test.clock.ms += 60_000;
  all.createContract();
  await all.deliverAll();
  expect(await all.queuedTopics()).toContain("subscription.created");
});

test("the hourly run is not due more often", async () => {
  const all = await ahead(2 * HOUR_MS);
  await all.load();
  const requestCount = all.platform.requests.length;
  all.test.clock.ms += HOUR_MS / 2;
  await all.test.app.reconciler.runOnce();
  expect(all.platform.requests.length).toBe(requestCount);
});
