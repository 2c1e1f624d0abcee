import { describe, expect, test } from "bun:test";
import type { Opening } from "../../../src/shopify/install/installer.ts";
import { START } from "../../support/app.ts";
import { type ConnectedShop, connected, DOMAIN, HOUR_MS, SECRET } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import { Installing, installing, NEW_SHOP as NEW } from "../../support/installing.ts";

const SCOPES = ["read_own_subscription_contracts", "read_customers", "read_orders", "read_products"];

/** A shop that was connected by the command line. */
const alreadyConnected = async (): Promise<Installing & { all: ConnectedShop }> => {
  const all = await connected();
  return Object.assign(new Installing(all.test, all.platform, DOMAIN), { all });
};

describe("opening the page of a new shop", () => {
  test("connects the shop, and reads its scopes, plan and currency", async () => {
    const all = await installing();
    all.remote.setAppSubscription({ name: "Free", status: "ACTIVE", webhook: false });
    expect(await all.open()).toMatchObject({ shop: { domain: NEW, currency: "JPY", plan: "free" } });
    expect(await all.store.shops.find(NEW)).toMatchObject({ currency: "JPY", plan: "free" });
    expect(await all.connection()).toMatchObject({
      kind: "refresh",
      scopes: SCOPES,
      connectedAt: START,
      trouble: null,
    });
    expect(await all.tokens()).toMatchObject({ refreshToken: expect.any(String), expiresAt: START + HOUR_MS });
    expect(all.platform.exchanges).toBe(1);
  });

  test("exchanges once for many views", async () => {
    const all = await installing();
    const openings = await Promise.all(Array.from({ length: 20 }, all.open));
    expect(openings.every((opening) => "shop" in opening)).toBe(true);
    await all.open();
    expect(all.platform.exchanges).toBe(1);
  });

  test("keeps the connection if the rest cannot be read", async () => {
    const all = await installing();
    all.platform.fault = ({ operation }) => (operation === "Installation" ? { status: 503 } : undefined);
    expect(await all.open()).toMatchObject({ shop: { domain: NEW, plan: "pro", currency: "USD" } });
    expect(await all.connection()).toMatchObject({ kind: "refresh", scopes: SCOPES });
  });

  test("takes a token without a life for one of an hour", async () => {
    const all = await installing();
    all.remote.tokens.namesLife = false;
    await all.open();
    expect(await all.connection()).toMatchObject({ kind: "refresh" });
    expect(await all.tokens()).toMatchObject({ refreshToken: expect.any(String), expiresAt: START + HOUR_MS });
  });

  test("uses a permanent token until the platform refuses it", async () => {
    const all = await installing();
    const body = JSON.stringify({ access_token: all.remote.issueToken(), scope: SCOPES.join(",") });
    all.platform.fault = ({ operation }) => (operation === "exchange" ? { status: 200, body } : undefined);
    await all.open();
    expect(await all.connection()).toMatchObject({ kind: "token", expiresAt: null });
    all.platform.fault = () => undefined;
    all.remote.tokens.revoke();
    all.test.clock.ms += 60_000;
    await all.open();
    await all.settled();
    expect(await all.connection()).toMatchObject({ kind: "refresh", trouble: null });
  });

  test.each<[string, { status: number; body?: string }, string]>([
    ["503", { status: 503 }, "platform"],
    ["429", { status: 429 }, "platform"],
    ["401", { status: 401, body: '{"error":"invalid_client"}' }, "platform"],
    ["404", { status: 404 }, "platform"],
    ["400 with another error", { status: 400, body: '{"error":"invalid_request"}' }, "platform"],
    ["200 without a token", { status: 200, body: "{}" }, "platform"],
    ["200 with a page", { status: 200, body: "<html>" }, "platform"],
    ["400 with invalid_subject_token", { status: 400, body: '{"error":"invalid_subject_token"}' }, "token"],
  ])("stores nothing if the platform answers %s", async (_title, fault, waits) => {
    const all = await installing();
    all.platform.fault = () => fault;
    expect(await all.open()).toEqual({ waits } as Opening);
    expect(await all.store.shops.list()).toEqual([]);
    all.platform.fault = () => undefined;
    expect(await all.open()).toHaveProperty("shop");
  });

  test("stores nothing for a token that the platform finds forged", async () => {
    const all = await installing();
    expect(await all.test.app.platform.installer.open(...all.token("another secret"))).toEqual({ waits: "token" });
    expect(await all.store.shops.list()).toEqual([]);
  });

  test("waits five seconds, and the exchange goes on", async () => {
    const all = await installing();
    const answer = all.outlastView();
    expect(await all.open()).toEqual({ waits: "connecting" });
    expect(AbortSignal.timeout).toHaveBeenCalledWith(5_000);
    answer();
    await eventually(async () => (await all.connection()) !== undefined);
    expect(await all.open()).toHaveProperty("shop");
    expect(all.platform.exchanges).toBe(1);
  });

  test("waits while the data of an earlier installation is removed, and spends no exchange", async () => {
    const all = await installing();
    await all.open();
    await all.store.shops.beginRemoval(NEW, START);
    expect(await all.open()).toEqual({ waits: "removal" });
    expect(all.platform.exchanges).toBe(1);
  });

  test("heals at once after a kill between exchange and store", async () => {
    const all = await installing();
    await all.store.connections.beginExchange(NEW, "killed", START, START + 15_000);
    expect(await all.open()).toHaveProperty("shop");
    expect(all.platform.exchanges).toBe(1);
  });
});

describe("a connection heals at the next view", () => {
  test("with a dead pair, by one exchange for many views", async () => {
    const all = await installing();
    await all.open();
    all.remote.tokens.revoke();
    all.test.clock.ms += 60_000;
    // The program does not know yet that the tokens are revoked. The view checks them, and exchanges its ID token.
    await all.open();
    await all.settled();
    expect(all.platform.exchanges).toBe(2);
    expect(await all.connection()).toMatchObject({ trouble: null, connectedAt: all.test.clock.ms, eventsSince: START });
    all.remote.tokens.revoke();
    await all.store.connections.setTrouble(await all.shopId(), "dead (HTTP 401)", START);
    const openings = await Promise.all(Array.from({ length: 20 }, all.open));
    expect(openings.every((opening) => "shop" in opening)).toBe(true);
    expect(all.platform.exchanges).toBe(3);
    expect(await all.connection()).toMatchObject({ trouble: null });
  });

  test("after an uninstallation, with the time from which events are queued", async () => {
    const all = await installing();
    await all.open();
    const id = await all.shopId();
    all.remote.uninstall();
    all.test.clock.ms += 1_000;
    await all.store.connections.uninstall(id, all.test.clock.ms);
    // This view comes from a browser tab that was left open.
    expect(await all.open()).toEqual({ waits: "token" });
    expect(await all.connection()).toBeUndefined();
    all.remote.install();
    all.test.clock.ms += 60_000;
    expect(await all.open()).toMatchObject({ shop: { id } });
    expect(await all.connection()).toMatchObject({ connectedAt: all.test.clock.ms, eventsSince: START });
  });

  test("if the webhook of the uninstallation has not come: it comes late, and ends nothing", async () => {
    const all = await installing();
    await all.open();
    const id = await all.shopId();
    all.remote.uninstall();
    const uninstalledAt = all.test.clock.ms;
    all.remote.install();
    all.test.clock.ms += 60_000;
    await all.open();
    await all.settled();
    expect(await all.connection()).toMatchObject({ trouble: null, connectedAt: all.test.clock.ms });
    for (const at of [uninstalledAt, uninstalledAt + 1])
      expect(await all.store.connections.uninstall(id, at)).toBe(false);
    expect(await all.connection()).toBeDefined();
  });

  test("and counts from the ID token if our clock is behind the platform's", async () => {
    const all = await installing();
    const [idToken, text] = all.token();
    await all.test.app.platform.installer.open({ ...idToken, issuedAt: START + 9_000 }, text);
    expect(await all.connection()).toMatchObject({ connectedAt: START + 9_000 });
  });

  test("with too few scopes, at most once in ten minutes", async () => {
    const all = await installing();
    all.remote.scopes = ["read_orders"];
    await all.open();
    expect(await all.connection()).toMatchObject({ scopes: ["read_orders"] });
    all.test.clock.ms += 9 * 60_000;
    await all.open();
    await all.settled();
    expect(all.platform.exchanges).toBe(1);
    all.test.clock.ms += 60_000;
    await all.open();
    expect(all.platform.exchanges).toBe(2);
    all.remote.scopes = SCOPES;
    all.test.clock.ms += 10 * 60_000;
    await all.open();
    expect(await all.connection()).toMatchObject({ scopes: SCOPES });
    expect(all.platform.exchanges).toBe(3);
  });

  test("and the page opens while the platform gives no new tokens", async () => {
    const all = await installing();
    await all.open();
    all.remote.tokens.revoke();
    const id = await all.shopId();
    await all.store.connections.setTrouble(id, "dead (HTTP 401)", START);
    all.platform.fault = () => ({ status: 503 });
    expect(await all.open()).toMatchObject({ shop: { id } });
    expect(await all.open()).toMatchObject({ shop: { id } });
    expect(all.platform.exchanges).toBe(2);
    all.platform.fault = () => undefined;
    all.test.clock.ms += 60_000;
    await all.open();
    expect(await all.connection()).toMatchObject({ trouble: null });
  });

  test.each(["frozen", "blocked", "closed", "locked"] as const)("but not if the shop is %s", async (access) => {
    const all = await installing();
    await all.open();
    all.remote.setAccess(access);
    all.test.clock.ms += 60_000;
    await all.open();
    await all.settled();
    expect(await all.connection()).toMatchObject({ trouble: expect.stringContaining("HTTP 4") });
    await all.open();
    expect(all.platform.exchanges).toBe(1);
  });
});

describe("a shop that the operator connected", () => {
  test.each([
    ["client_credentials", () => ({ kind: "client_credentials" as const })],
    ["token", ({ remote }: ConnectedShop) => ({ kind: "token" as const, token: remote.issueToken() })],
  ])("keeps its connection by %s while it works", async (kind, credentials) => {
    const all = await alreadyConnected();
    await all.test.app.platform.connect(DOMAIN, credentials(all.all));
    expect(await all.open()).toMatchObject({ shop: { domain: DOMAIN } });
    await all.settled();
    expect(await all.connection()).toMatchObject({ kind });
    expect(all.platform.exchanges).toBe(0);
  });

  test("gets a pair at the next view when the platform refuses its token", async () => {
    const all = await alreadyConnected();
    await all.test.app.platform.connect(DOMAIN, { kind: "token", token: all.remote.issueToken() });
    all.remote.tokens.revoke();
    await all.open();
    await all.settled();
    expect(await all.connection()).toMatchObject({ kind: "refresh", trouble: null });
    expect(all.platform.exchanges).toBe(1);
  });

  test("is renamed when its staff come from the domain that the platform has named", async () => {
    const all = await alreadyConnected();
    const { shop } = all.all.shop;
    all.platform.renameShop(DOMAIN, NEW);
    await all.test.app.platform.warnings.noteDomain(shop, NEW);
    const opening = await all.test.app.platform.installer.open(...all.token(SECRET, NEW));
    expect(opening).toMatchObject({ shop: { id: shop.id, domain: NEW, firstDomain: DOMAIN } });
    expect(await all.store.shops.list()).toHaveLength(1);
  });
});
