import { describe, expect, test } from "bun:test";
import type { Tokens } from "../../src/domain/platform/connection.ts";
import type { NewInstallation } from "../../src/store/port/connections.ts";
import { START } from "../support/app.ts";
import { engines, storeInTwoProcesses, storeWithShop } from "./engines.ts";
import { failures, removeShop, TOKENS } from "./fixtures.ts";

const DOMAIN = "new.myshopify.com";
const PAIR: Tokens = { accessToken: "shpat_1", refreshToken: "shprt_1", expiresAt: START + 1_000 };

function installation(domain = DOMAIN, more: Partial<NewInstallation> = {}): NewInstallation {
  const shop = { domain, plan: "pro" as const, currency: "USD" };
  return { shop, kind: "refresh", tokens: PAIR, scopes: ["read_orders"], connectedAt: START, ...more };
}

describe.each(engines())("$name: installing the app in a shop", (engine) => {
  test("adds a new shop with its connection and its tokens", async () => {
    const { store, reopen } = await storeWithShop(engine);
    expect(await store.connections.beginExchange(DOMAIN, "p1", START, START + 100)).toBe(true);
    const shop = await store.connections.install("p1", installation());
    expect(shop).toMatchObject({ domain: DOMAIN, plan: "pro", currency: "USD", createdAt: START });
    const { id } = shop ?? { id: 0 };
    const again = await reopen();
    expect(await again.connections.find(id)).toEqual({
      kind: "refresh",
      scopes: ["read_orders"],
      expiresAt: START + 1_000,
      connectedAt: START,
      eventsSince: START,
      trouble: null,
      troubleSince: null,
    });
    expect(await again.connections.tokens(id)).toEqual(PAIR);
    expect((await again.shops.intakeSecret(DOMAIN))?.secret).toMatch(/^intake_/);
    expect(await again.shops.rowCounts(id)).toEqual({ customers: 0, subscriptions: 0, orders: 0 });
  });

  test("keeps a known shop and its plan, also by its first domain, and replaces its connection", async () => {
    const { store, shop } = await storeWithShop(engine);
    await store.shops.set(shop.domain, { plan: "free", currency: "EUR" });
    await store.connections.connect(shop.id, "token", TOKENS, [], START);
    await store.connections.setTrouble(shop.id, "revoked", START);
    await store.shops.rename(shop.domain, "renamed.myshopify.com");
    await store.connections.beginExchange(shop.domain, "p1", START, START + 100);
    const installed = await store.connections.install("p1", installation(shop.domain, { connectedAt: START + 7 }));
    expect(installed).toMatchObject({ id: shop.id, plan: "free", currency: "EUR" });
    const connection = { kind: "refresh" as const, connectedAt: START + 7, eventsSince: START, trouble: null };
    expect(await store.connections.find(shop.id)).toMatchObject(connection);
    expect(await store.shops.list()).toHaveLength(1);
  });

  test("after an uninstallation keeps the time from which events are queued", async () => {
    const { store, shop } = await storeWithShop(engine);
    await store.connections.connect(shop.id, "refresh", PAIR, [], START);
    await store.connections.uninstall(shop.id, START + 5);
    await store.connections.beginExchange(shop.domain, "p1", START, START + 100);
    await store.connections.install("p1", installation(shop.domain, { connectedAt: START + 9 }));
    expect(await store.connections.find(shop.id)).toMatchObject({ connectedAt: START + 9, eventsSince: START });
    expect(await store.connections.uninstallation(shop.id)).toBeUndefined();
    // This webhook of the old installation comes twice.
    expect(await store.connections.uninstall(shop.id, START + 5)).toBe(false);
    expect(await store.connections.find(shop.id)).toBeDefined();
  });

  test("stores nothing for a process whose reservation has passed to another process", async () => {
    const { store: one, second: two } = await storeInTwoProcesses(engine);
    expect(await one.connections.beginExchange(DOMAIN, "p1", START, START + 100)).toBe(true);
    expect(await two.connections.beginExchange(DOMAIN, "p2", START + 100, START + 200)).toBe(false);
    expect(await two.connections.beginExchange("other.myshopify.com", "p2", START, START + 200)).toBe(true);
    expect(await two.connections.beginExchange(DOMAIN, "p2", START + 101, START + 200)).toBe(true);
    expect(await one.connections.install("p1", installation())).toBeUndefined();
    expect(await one.shops.find(DOMAIN)).toBeUndefined();
    expect(await two.connections.install("p2", installation())).toBeDefined();
    expect(await two.connections.install("p2", installation())).toBeUndefined();
  });

  test("is extended by its own process only", async () => {
    const { store } = await storeWithShop(engine);
    await store.connections.beginExchange(DOMAIN, "p1", START, START + 100);
    await store.connections.extendExchange(DOMAIN, "p2", START + 200);
    await store.connections.extendExchange("other.myshopify.com", "p1", START + 300);
    await store.connections.extendExchange(DOMAIN, "p1", START + 150);
    expect(await store.connections.beginExchange(DOMAIN, "p2", START + 150, START + 400)).toBe(false);
    expect(await store.connections.beginExchange(DOMAIN, "p2", START + 151, START + 400)).toBe(true);
    await store.connections.extendExchange(DOMAIN, "p1", START);
    expect(await store.connections.beginExchange(DOMAIN, "p1", START + 400, START + 500)).toBe(false);
  });

  test("may begin again when a failed exchange has ended, but another process cannot end it", async () => {
    const { store } = await storeWithShop(engine);
    await store.connections.beginExchange(DOMAIN, "p1", START, START + 100);
    await store.connections.endExchange(DOMAIN, "p2");
    expect(await store.connections.beginExchange(DOMAIN, "p2", START, START + 100)).toBe(false);
    await store.connections.endExchange(DOMAIN, "p1");
    expect(await store.connections.beginExchange(DOMAIN, "p2", START, START + 100)).toBe(true);
    await store.connections.endAllExchanges();
    expect(await store.connections.beginExchange(DOMAIN, "p2", START, START + 100)).toBe(true);
  });

  test("is refused while the shop is being removed", async () => {
    const { store } = await storeWithShop(engine);
    await store.shops.add({ domain: DOMAIN, plan: "pro", currency: "USD" }, START);
    await store.shops.beginRemoval(DOMAIN, START);
    await store.connections.beginExchange(DOMAIN, "p1", START, START + 100);
    expect(await failures([store.connections.install("p1", installation())])).toMatchObject([{ code: "conflict" }]);
    expect(await store.syncs.unloaded()).toEqual([]);
    await removeShop(store, DOMAIN);
    await store.connections.beginExchange(DOMAIN, "p1", START, START + 100);
    expect(await store.connections.install("p1", installation())).toBeDefined();
  });
});
