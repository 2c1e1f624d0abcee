import { describe, expect, test } from "bun:test";
import { START } from "../support/app.ts";
import { claimOne, failed, queueRewards, record } from "./delivery-fixtures.ts";
import { engines, storeWithEvents, storeWithTwoShops } from "./engines.ts";
import { addShop, URL as HOOK, HOUR, TOKENS } from "./fixtures.ts";

const SCOPES = ["read_customers", "read_orders"];
const NOW = START + 10 * HOUR;
const none = { count: 0, shops: [] };

describe.each(engines())("$name: a checkup", (engine) => {
  test("of shops without a fault finds none", async () => {
    const { checkup } = await storeWithTwoShops(engine);
    const { shops, schema, ...rest } = await checkup();
    expect(schema.isCurrent).toBe(true);
    expect(await shops.firstShopAt()).toBeNumber();
    expect(await shops.connectedDomain()).toBeUndefined();
    expect([await shops.refused(), await shops.expired(NOW), await shops.unreconciled(NOW, NOW)]).toEqual([
      none,
      none,
      none,
    ]);
    expect(await shops.grantedScopes()).toEqual([]);
    expect(await shops.endpoints()).toEqual({ count: 0, endpoints: [] });
    expect(await rest.serves()).toEqual([]);
    expect(rest.sealedWith).toMatch(/^[0-9a-f]{16}$/);
    expect(await rest.unsafeSettings()).toEqual([]);
    expect((await rest.figures()).bytes).toBeGreaterThan(0);
    expect((await rest.clock()) === null).toBe(engine.name === "sqlite");
  });

  test("finds refused connections and expired tokens, and not those that can be renewed", async () => {
    const { store, shop, other, checkup } = await storeWithTwoShops(engine);
    const expired = { ...TOKENS, expiresAt: NOW };
    await store.connections.connect(shop.id, "token", expired, SCOPES, START);
    await store.connections.connect(other.id, "refresh", { ...expired, refreshToken: "r" }, SCOPES, START);
    const { shops } = await checkup();
    expect(await shops.expired(NOW - 1)).toEqual(none);
    expect(await shops.expired(NOW)).toEqual({ count: 1, shops: [{ domain: shop.domain, reason: null }] });
    expect(await shops.connectedDomain()).toBe(shop.domain);
    await store.connections.setTrouble(shop.id, "the shop is frozen", NOW);
    expect(await shops.refused()).toEqual({ count: 1, shops: [{ domain: shop.domain, reason: "the shop is frozen" }] });
    expect(await shops.connectedDomain()).toBe(other.domain);
    expect(await shops.grantedScopes()).toEqual([{ scopes: SCOPES, count: 2, domain: shop.domain }]);
    await store.shops.beginRemoval(shop.domain, NOW);
    expect([await shops.refused(), await shops.expired(NOW)]).toEqual([none, none]);
  });

  test("finds shops whose mirror is complete only up to an earlier time", async () => {
    const { store, shop, other, checkup } = await storeWithTwoShops(engine);
    const { shops } = await checkup();
    const late = async (until: number) => (await shops.unreconciled(until, NOW)).shops.map(({ domain }) => domain);
    await store.connections.connect(shop.id, "refresh", TOKENS, SCOPES, START);
    await store.connections.connect(other.id, "refresh", TOKENS, SCOPES, START + HOUR);
    // The mirror of a shop that was never loaded counts as complete up to the time when the shop was connected.
    expect(await late(START)).toEqual([shop.domain]);
    await store.syncs.complete(shop.id, "full", START + HOUR, 0, START + HOUR);
    expect(await late(START)).toEqual([]);
    expect(await late(START + HOUR)).toEqual([shop.domain, other.domain].toSorted());
    await store.syncs.complete(shop.id, "changes", START + 2 * HOUR, 0, START + 3 * HOUR);
    expect(await late(START + HOUR)).toEqual([other.domain]);
    expect(await late(START + 2 * HOUR)).toContain(shop.domain);
    // This time was noted before the clock was set back.
    await store.syncs.complete(shop.id, "changes", NOW + HOUR, 0, NOW + HOUR);
    expect(await late(START + HOUR)).toContain(shop.domain);
    await store.connections.setTrouble(shop.id, "the shop is frozen", NOW);
    expect(await late(START + 2 * HOUR)).toEqual([other.domain]);
  });

  test("sums up a fault of many shops, and lists each endpoint once, those that fail first", async () => {
    const { store, checkup } = await engine.open();
    for (let number = 0; number < 5; number += 1) {
      const shop = await addShop(store, `shop-${number}`);
      await store.connections.connect(shop.id, "refresh", TOKENS, number === 0 ? SCOPES : [], START);
      await store.connections.setTrouble(shop.id, "the shop is frozen", NOW);
      await store.webhooks.set(shop.id, { url: `https://hooks-${Math.min(number, 3)}.example.com/` }, START);
    }
    const { shops } = await checkup();
    const { count, shops: named } = await shops.refused();
    expect([count, named.length]).toEqual([5, 3]);
    expect(await shops.grantedScopes()).toMatchObject([
      { scopes: [], count: 4 },
      { scopes: SCOPES, count: 1 },
    ]);
    const endpoints = [0, 1, 2, 3].map((number) => ({
      url: `https://hooks-${number}.example.com/`,
      domain: `shop-${number}.myshopify.com`,
    }));
    expect(await shops.endpoints()).toEqual({ count: 4, endpoints });
  });

  test("puts the endpoint first that fails now", async () => {
    const { store, shop, checkup } = await storeWithEvents(engine);
    const early = await addShop(store, "other");
    await store.webhooks.set(early.id, { url: "https://a.example.com/" }, START);
    await queueRewards(store, shop, ["r"], START);
    await record(store, [failed(await claimOne(store, shop, { now: START }), START)], [HOUR]);
    const { shops } = await checkup();
    const endpoints = [
      { url: HOOK, domain: shop.domain },
      { url: "https://a.example.com/", domain: early.domain },
    ];
    expect(await shops.endpoints()).toEqual({ count: 2, endpoints });
  });

  test("names the serve that noted its address", async () => {
    const { store, checkup } = await engine.open();
    if (engine.name === "sqlite") await store.sessions.noteAddress("http://127.0.0.1:8080");
    const { serves } = await checkup();
    expect(await serves()).toEqual(
      engine.name === "sqlite" ? [{ address: "http://127.0.0.1:8080", processId: null }] : [],
    );
  });
});
