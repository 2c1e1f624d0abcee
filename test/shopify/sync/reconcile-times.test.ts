import { describe, expect, test } from "bun:test";
import { DOMAIN, HOUR_MS, withContract } from "../../support/connected.ts";
import { loadedAnHourAgo } from "./loaded.ts";

describe("reconciling", () => {
  test("begins five minutes before the last complete run", async () => {
    const all = await loadedAnHourAgo();
    all.test.clock.ms -= HOUR_MS + 5 * 60_000;
    all.remote.pause(all.contract);
    all.test.clock.ms += HOUR_MS + 5 * 60_000;
    expect(await all.reconcile()).toMatchObject({ subscriptions: 1 });
    all.test.clock.ms += HOUR_MS;
    expect(await all.reconcile()).toMatchObject({ subscriptions: 0 });
  });

  test("finds changes since a load that ran by a clock that was ahead", async () => {
    const all = await loadedAnHourAgo();
    all.test.clock.ms += 72 * HOUR_MS;
    await all.load();
    all.test.clock.step(-72 * HOUR_MS);
    all.remote.pause(all.contract);
    all.remote.outgoing.length = 0;
    all.test.clock.ms += HOUR_MS;
    await all.reconcile();
    expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "PAUSED" }]);
  });

  test("leaves no gap once the time of a load by a clock that was ahead comes", async () => {
    const all = await loadedAnHourAgo();
    all.test.clock.ms += 2 * HOUR_MS;
    await all.load();
    all.test.clock.step(-2 * HOUR_MS);
    await all.reconcile();
    all.test.clock.ms += HOUR_MS;
    all.remote.pause(all.contract);
    all.remote.outgoing.length = 0;
    all.test.clock.ms += HOUR_MS + 1;
    await all.reconcile();
    expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "PAUSED" }]);
  });

  test("from a given time leaves no gap behind the hourly runs", async () => {
    const all = await loadedAnHourAgo();
    all.test.clock.ms += 24 * HOUR_MS;
    all.remote.cancel(all.contract);
    all.test.clock.ms += 24 * HOUR_MS;
    await all.reconcile(all.test.clock.ms - HOUR_MS);
    expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "ACTIVE" }]);
    await all.reconcile();
    expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "CANCELLED" }]);
  });

  test("from a given time is possible for a shop that was never loaded, and does not count as a load", async () => {
    const { all } = await withContract();
    all.test.clock.ms += HOUR_MS;
    expect(await all.reconcile(all.test.clock.ms - 2 * HOUR_MS)).toMatchObject({ subscriptions: 1 });
    await expect(all.reconcile()).rejects.toThrow(`${DOMAIN} was never loaded completely`);
  });
});
