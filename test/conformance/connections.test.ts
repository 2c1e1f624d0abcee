import { describe, expect, test } from "bun:test";
import type { Tokens } from "../../src/domain/platform/connection.ts";
import { START } from "../support/app.ts";
import { engines, storeInTwoProcesses, storeWithShop, storeWithTwoShops } from "./engines.ts";
import { addShop, expectConflict, removeShop, TOKENS } from "./fixtures.ts";

const PAIR: Tokens = { accessToken: "shpat_1", refreshToken: "shprt_1", expiresAt: START + 1_000 };
const NEXT: Tokens = { accessToken: "shpat_2", refreshToken: "shprt_2", expiresAt: START + 2_000 };

const DAY_MS = 86_400_000;

describe.each(engines())("$name: connecting a shop", (engine) => {
  test("stores its tokens, its scopes and the time from which events are queued", async () => {
    const { store, reopen, shop, other } = await storeWithTwoShops(engine);
    await store.connections.connect(shop.id, "refresh", PAIR, ["read_orders", "read_customers"], START);
    const scopes = ["read_orders", "read_customers"];
    const connection = {
      kind: "refresh" as const,
      scopes,
      expiresAt: START + 1_000,
      connectedAt: START,
      eventsSince: START,
      trouble: null,
      troubleSince: null,
    };
    expect(await store.connections.find(shop.id)).toEqual(connection);
    expect(await store.connections.tokens(shop.id)).toEqual(PAIR);
    expect(await (await reopen()).connections.tokens(shop.id)).toEqual(PAIR);
    expect([await store.connections.find(other.id), await store.connections.tokens(other.id)]).toEqual([
      undefined,
      undefined,
    ]);
  });

  test("again replaces the tokens, ends trouble and renewal, and keeps the time from which events are queued", async () => {
    const { store, shop } = await storeWithShop(engine);
    await store.connections.connect(shop.id, "refresh", PAIR, ["read_orders"], START);
    await store.connections.setTrouble(shop.id, "the access token was revoked", START);
    await store.connections.beginRenewal(shop.id, "p1", START, START + 100);
    await store.connections.connect(shop.id, "token", TOKENS, [], START + 7);
    const connection = {
      kind: "token" as const,
      scopes: [],
      expiresAt: null,
      connectedAt: START + 7,
      eventsSince: START,
      trouble: null,
      troubleSince: null,
    };
    expect(await store.connections.find(shop.id)).toEqual(connection);
    expect(await store.connections.tokens(shop.id)).toEqual(TOKENS);
    expect(await store.connections.beginRenewal(shop.id, "p2", START, START + 100)).toBe(true);
  });

  test("stores the app's key with the tokens, before and after a renewal", async () => {
    const { store, reopen, shop } = await storeWithTwoShops(engine);
    await store.connections.connect(shop.id, "app_key", { ...TOKENS, appKey: "key" }, [], START);
    expect(await store.connections.find(shop.id)).toMatchObject({ kind: "app_key" });
    await store.connections.renew(shop.id, { ...NEXT, appKey: "key" }, TOKENS);
    expect(await (await reopen()).connections.tokens(shop.id)).toEqual({ ...NEXT, appKey: "key" });
  });

  test("replaces its scopes, and not another shop's", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    for (const { id } of [shop, other]) await store.connections.connect(id, "token", TOKENS, ["read_orders"], START);
    await store.connections.setScopes(shop.id, ["read_customers", "read_products"]);
    expect((await store.connections.find(shop.id))?.scopes).toEqual(["read_customers", "read_products"]);
    expect((await store.connections.find(other.id))?.scopes).toEqual(["read_orders"]);
  });

  test("that was removed is refused", async () => {
    const { store, shop } = await storeWithShop(engine);
    await removeShop(store, shop.domain);
    await expectConflict(store.connections.connect(shop.id, "token", TOKENS, [], START));
  });
});

describe.each(engines())("$name: renewing tokens", (engine) => {
  test("belongs to one process until it ends, or until its time is over", async () => {
    const { store, reopen } = await engine.open();
    const other = await reopen();
    const [shop, another] = [await addShop(store), await addShop(store, "another")];
    for (const { id } of [shop, another]) await store.connections.connect(id, "refresh", PAIR, [], START);
    const begin = (process: string, now: number) => other.connections.beginRenewal(shop.id, process, now, now + 100);
    expect(await store.connections.beginRenewal(shop.id, "p1", START, START + 100)).toBe(true);
    expect([await begin("p2", START + 50), await begin("p1", START + 100)]).toEqual([false, false]);
    expect(await other.connections.beginRenewal(another.id, "p2", START, START + 100)).toBe(true);
    expect(await begin("p2", START + 101)).toBe(true);
    // The first process is too late: the renewal belongs to another process now.
    await store.connections.endRenewal(shop.id, "p1");
    expect(await begin("p3", START + 102)).toBe(false);
    await other.connections.endRenewal(shop.id, "p2");
    expect(await begin("p3", START + 102)).toBe(true);
    expect(await store.connections.beginRenewal(another.id, "p3", START + 1, START + 100)).toBe(false);
  });

  test("by two processes at the same time is begun by one of them", async () => {
    const { store, second: other, shop } = await storeInTwoProcesses(engine);
    await store.connections.connect(shop.id, "refresh", PAIR, [], START);
    const begun = await Promise.all(
      [store, other].map((each, n) => each.connections.beginRenewal(shop.id, `p${n}`, START, START + 100)),
    );
    expect(begun.filter(Boolean)).toHaveLength(1);
  });

  test("stores the new pair and ends the renewal; the trouble stays until the platform accepts the token", async () => {
    const { store, reopen } = await engine.open();
    const other = await reopen();
    const [shop, another] = [await addShop(store), await addShop(store, "another")];
    for (const { id } of [shop, another]) await store.connections.connect(id, "refresh", PAIR, ["read_orders"], START);
    expect(await other.connections.tokens(shop.id)).toEqual(PAIR);
    await store.connections.setTrouble(shop.id, "the access token was revoked", START);
    await store.connections.beginRenewal(shop.id, "p1", START, START + 100);
    await store.connections.renew(shop.id, NEXT, NEXT);
    expect(await other.connections.tokens(shop.id)).toEqual(PAIR);
    await store.connections.renew(shop.id, NEXT, PAIR);
    expect(await other.connections.tokens(shop.id)).toEqual(NEXT);
    const connection = { kind: "refresh" as const, scopes: ["read_orders"], connectedAt: START, eventsSince: START };
    const trouble = { trouble: "the access token was revoked", troubleSince: START };
    expect(await store.connections.find(shop.id)).toEqual({ ...connection, expiresAt: START + 2_000, ...trouble });
    expect(await store.connections.beginRenewal(shop.id, "p2", START, START + 100)).toBe(true);
    expect(await store.connections.tokens(another.id)).toEqual(PAIR);
  });

  test("of a shop that is not connected does nothing", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    expect(await store.connections.beginRenewal(shop.id, "p1", START, START + 100)).toBe(false);
    await store.connections.renew(shop.id, NEXT, PAIR);
    await store.connections.endRenewal(shop.id, "p1");
    expect(await rows("connections")).toEqual([]);
  });
});

describe.each(engines())("$name: trouble with the access token", (engine) => {
  test("is stored, and the result says whether it changed", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    for (const { id } of [shop, other]) await store.connections.connect(id, "token", TOKENS, [], START);
    const troubleOf = async ({ id }: { id: number }) => {
      const { trouble, troubleSince } = (await store.connections.find(id)) ?? {};
      return [trouble, troubleSince];
    };
    const steps = [
      ["revoked", true, 1],
      ["revoked", false, 1],
      ["expired", true, 3],
      [null, true, null],
      [null, false, null],
    ] as const;
    for (const [at, [trouble, changed, since]] of steps.entries()) {
      expect(await store.connections.setTrouble(shop.id, trouble, at + 1)).toBe(changed);
      expect([await troubleOf(shop), await troubleOf(other)]).toEqual([
        [trouble, since],
        [null, null],
      ]);
    }
  });

  test("of a shop that is not connected is not stored", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    expect(await store.connections.setTrouble(shop.id, "revoked", START)).toBe(false);
    expect(await rows("connections")).toEqual([]);
  });
});

test.each(engines())("$name: an uninstallation ends the connection, and is kept until the next one", async (engine) => {
  const { store, rows, shop, other } = await storeWithTwoShops(engine);
  const { connections } = store;
  for (const { id } of [shop, other]) await connections.connect(id, "token", TOKENS, [], START);
  expect(await connections.uninstall(shop.id, START)).toBe(false);
  expect(await connections.uninstallation(shop.id)).toBeUndefined();
  expect(await connections.uninstall(shop.id, START + 1)).toBe(true);
  expect(await connections.uninstall(shop.id, START + 1)).toBe(false);
  expect((await rows("connections")).map(({ shop_id }) => shop_id)).toEqual([other.id]);
  const noted = { shopId: shop.id, uninstalledAt: START + 1 };
  expect(await connections.uninstallation(shop.id)).toEqual(noted);
  expect(await connections.uninstalledBefore(START)).toEqual([]);
  expect(await connections.uninstalledBefore(START + 1)).toEqual([noted]);
  await connections.noteContractsEnded(shop.id, START);
  expect(await connections.uninstalledBefore(START + 1)).toEqual([noted]);
  await connections.noteContractsEnded(shop.id, START + 1);
  expect([await connections.uninstalledBefore(START + 1), await connections.uninstallation(shop.id)]).toEqual([
    [],
    noted,
  ]);
  await connections.connect(shop.id, "token", TOKENS, [], START + 5);
  expect(await connections.find(shop.id)).toMatchObject({ connectedAt: START + 5, eventsSince: START });
  expect(await connections.uninstallation(shop.id)).toBeUndefined();
});

describe.each(engines())("$name: a shop that is connected again after an uninstallation", (engine) => {
  const HOUR_MS = 3_600_000;

  /** A shop that was loaded, and then uninstalled the app. */
  async function uninstalled() {
    const { store, shop, other } = await storeWithTwoShops(engine);
    const { connections, syncs } = store;
    for (const { id } of [shop, other]) {
      await connections.connect(id, "token", TOKENS, [], START);
      await syncs.complete(id, "full", START + 1, 7, START + 2);
    }
    await connections.uninstall(shop.id, START + 3);
    const unloaded = async () => (await syncs.unloaded()).map(({ shopId }) => shopId);
    const connectAt = (at: number) => connections.connect(shop.id, "token", TOKENS, [], at);
    return { connections, syncs, shop, other, unloaded, connectAt };
  }

  test("stays loaded if its contracts are mirrored as before", async () => {
    const { syncs, shop, unloaded, connectAt } = await uninstalled();
    await connectAt(START + 46 * HOUR_MS);
    expect(await unloaded()).toEqual([]);
    expect(await syncs.lastComplete(shop.id, "changes")).toBeUndefined();
  });

  test("counts as reconciled and not as loaded if its contracts may have ended", async () => {
    const { syncs, shop, other, unloaded, connectAt } = await uninstalled();
    await connectAt(START + 48 * HOUR_MS);
    expect(await unloaded()).toEqual([shop.id]);
    expect(await syncs.lastComplete(shop.id, "full")).toBeUndefined();
    expect(await syncs.lastComplete(shop.id, "changes")).toEqual({
      startedAt: START + 1,
      endedAt: START + 2,
      changed: 0,
    });
    expect(await syncs.lastComplete(other.id, "full")).toMatchObject({ startedAt: START + 1 });
  });

  test("is loaded from the start, and keeps the time of its last reconciliation", async () => {
    const { connections, syncs, shop, unloaded, connectAt } = await uninstalled();
    await syncs.complete(shop.id, "changes", START + 2, 3, START + 3);
    const counts = { customers: 0, subscriptions: 9, orders: 0, changed: 0, events: 0, skipped: 0 };
    await syncs.save(shop.id, "full", { startedAt: START, stage: "subscriptions", cursor: "c", events: false, counts });
    await connections.noteContractsEnded(shop.id, START + 3);
    await connectAt(START + 4);
    expect(await unloaded()).toEqual([shop.id]);
    expect(await syncs.unfinished(shop.id, "full")).toBeUndefined();
    expect(await syncs.lastComplete(shop.id, "changes")).toEqual({
      startedAt: START + 2,
      endedAt: START + 3,
      changed: 3,
    });
  });
});

test.each(engines())("$name: disconnecting deletes the tokens, unless the shop was connected again", async (engine) => {
  const { store, rows, shop, other } = await storeWithTwoShops(engine);
  for (const { id } of [shop, other]) await store.connections.connect(id, "token", TOKENS, [], START);
  expect(await store.connections.disconnect(shop.id, START)).toBe(false);
  expect(await store.connections.find(shop.id)).toBeDefined();
  expect(await store.connections.disconnect(shop.id, START + 1)).toBe(true);
  expect(await store.connections.disconnect(shop.id, START + 1)).toBe(false);
  expect([await store.connections.find(shop.id), await store.connections.tokens(shop.id)]).toEqual([
    undefined,
    undefined,
  ]);
  expect((await rows("connections")).map(({ shop_id }) => shop_id)).toEqual([other.id]);
  await store.connections.connect(shop.id, "token", TOKENS, [], START + 5);
  expect(await store.connections.find(shop.id)).toMatchObject({ connectedAt: START + 5, eventsSince: START + 5 });
});

describe.each(engines())("$name: warnings about a connection", (engine) => {
  test("keep their time, and are logged when they begin or change, and once a day", async () => {
    const { store, shop, other } = await storeWithTwoShops(engine);
    const { connections } = store;
    for (const { id } of [shop, other]) await connections.connect(id, "token", TOKENS, [], START);
    const steps = [
      ["2026-10", 1, true],
      ["2026-10", DAY_MS, false],
      ["2026-10", DAY_MS + 1, true],
      ["2026-10", DAY_MS + 2, false],
      ["2027-01", DAY_MS + 3, true],
    ] as const;
    for (const [text, at, isLogged] of steps)
      expect(await connections.warn(shop.id, "answers", text, START + at)).toBe(isLogged);
    await connections.warn(shop.id, "webhooks", "2026-10", START + 2);
    expect(await connections.warnings(shop.id)).toEqual([
      { kind: "webhooks", text: "2026-10", since: START + 2 },
      { kind: "answers", text: "2027-01", since: START + DAY_MS + 3 },
    ]);
    expect(await connections.warnings(other.id)).toEqual([]);
    await connections.endWarning(shop.id, "answers");
    expect(await connections.warnings(shop.id)).toHaveLength(1);
  });

  test("end when the shop is connected again, or disconnected, and are only for connected shops", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    const { connections } = store;
    expect(await connections.warn(shop.id, "answers", "2026-10", START)).toBe(false);
    for (const end of [
      () => connections.connect(shop.id, "token", TOKENS, [], START),
      () => connections.disconnect(shop.id, START + 1),
    ]) {
      await connections.connect(shop.id, "token", TOKENS, [], START);
      expect(await connections.warn(shop.id, "answers", "2026-10", START)).toBe(true);
      await end();
      expect(await rows("platform_warnings")).toEqual([]);
    }
  });
});
