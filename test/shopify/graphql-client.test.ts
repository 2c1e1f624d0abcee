import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CUSTOMERS_COUNT } from "../../src/shopify/api/operations/customers.ts";
import { type ConnectionResult, connected, DOMAIN } from "../support/connected.ts";
import type { Fault, FaultInfo } from "../support/platform/faults.ts";

function ask({ test, shop }: ConnectionResult) {
  return test.app.platform.client.query(shop.shop, CUSTOMERS_COUNT, {});
}

/** Fails the first n requests of the operation. */
function first(n: number, fault: Fault) {
  return ({ operation, n: nth }: FaultInfo) => (operation === "CustomersCount" && nth <= n ? fault : undefined);
}

describe("what may pass is asked again", () => {
  test.each([
    ["HTTP 500", { status: 500 }],
    ["HTTP 503 with Retry-After", { status: 503, headers: { "Retry-After": "2" } }],
    ["HTTP 429", { status: 429, headers: { "Retry-After": "1.5" } }],
    ["a reset connection", "reset" as const],
    ["an answer that is lost", "lost" as const],
  ])("%s", async (_name, fault) => {
    const all = await connected();
    all.platform.fault = first(3, fault);
    expect(await ask(all)).toEqual({ customersCount: { count: 0 } });
  });

  test("and not for ever", async () => {
    const all = await connected();
    all.platform.fault = first(1_000, { status: 502 });
    const asked = () => all.platform.requests.filter(({ operation }) => operation === "CustomersCount").length;
    await expect(ask(all)).rejects.toThrow("the platform answered HTTP 502");
    expect(asked()).toBe(5);
  });

  test("what is no use asking again is not", async () => {
    const all = await connected();
    all.platform.fault = first(1_000, { status: 404 });
    await expect(ask(all)).rejects.toThrow("the platform answered HTTP 404");
    expect(all.platform.requests.filter(({ operation }) => operation === "CustomersCount")).toHaveLength(1);
  });
});

test("the pace is the platform's: when its points are gone it is waited for, and it has to refuse next to nothing", async () => {
  const all = await connected({}, { maximumAvailable: 60, restoreRate: 400 });
  for (let n = 0; n < 5; n += 1) all.remote.createCustomer({ email: `${n}@example.com` });
  await Promise.all(Array.from({ length: 40 }, () => ask(all)));
  expect(all.platform.throttled).toBeLessThanOrEqual(3);
});

describe("tokens", () => {
  test("one that ends is renewed before it does", async () => {
    const all = await connected();
    await ask(all);
    expect(all.platform.tokenRequests).toBe(1);
    all.test.clock.ms += 23.95 * 3_600_000;
    await Promise.all([ask(all), ask(all), ask(all)]);
    expect(all.platform.tokenRequests).toBe(2);
  });

  test("one that was revoked is replaced by the app's own credentials, and nobody has to know", async () => {
    const all = await connected();
    all.remote.revokeTokens();
    expect(await ask(all)).toEqual({ customersCount: { count: 0 } });
    expect(all.test.logged.join("")).not.toContain("refuses the shop");
  });

  test("a pair rotates, and what is stored is the newest", async () => {
    const all = await connected();
    const { store, platform } = all.test.app;
    const { refreshToken } = all.remote.issuePair();
    await platform.connect(DOMAIN, { kind: "refresh", refreshToken });
    for (let n = 0; n < 3; n += 1) {
      all.test.clock.ms += 3_600_000;
      await Promise.all([ask(all), ask(all)]);
    }
    const stored = await store.connections.tokens(all.shop.shop.id);
    expect(stored?.refreshToken).not.toBe(refreshToken);
    expect(all.platform.requests.filter(({ operation, outcome }) => operation === "token" && outcome !== "ok")).toEqual([]);
  });

  test("one given for good that is refused is said once, shown with the shop, and said once more when it is over", async () => {
    const all = await connected();
    const { store, platform } = all.test.app;
    const byHand = (token: string) => platform.connect(DOMAIN, { kind: "token", token });
    await byHand(all.remote.issueToken());
    all.remote.revokeTokens();
    for (let n = 0; n < 3; n += 1) await expect(ask(all)).rejects.toThrow("the platform refuses the shop's token");
    const said = () => all.test.logged.filter((line) => line.includes("refuses the shop"));
    expect(said()).toHaveLength(1);
    expect((await store.connections.find(all.shop.shop.id))?.trouble).toContain("refuses the shop's token");
    await byHand(all.remote.issueToken());
    await ask(all);
    expect((await store.connections.find(all.shop.shop.id))?.trouble).toBeNull();
    expect(said()).toHaveLength(1);
  });

  test("they are nowhere in the log or in the database as they are", async () => {
    const all = await connected();
    await ask(all);
    const { accessToken } = (await all.test.app.store.connections.tokens(all.shop.shop.id)) ?? { accessToken: "" };
    expect(accessToken).not.toBe("");
    expect(all.test.logged.join("")).not.toContain(accessToken);
    const files = ["sds.db", "sds.db-wal"].map((name) => readFileSync(join(all.test.folder, "data", name)));
    expect(files.some((bytes) => bytes.includes(accessToken))).toBe(false);
  });
});

test("a stop does not wait for a platform that hangs, tokens included", async () => {
  const all = await connected();
  all.test.clock.ms += 24 * 3_600_000;
  all.platform.fault = () => ({ delay: 20_000 });
  const asking = ask(all);
  asking.catch(() => undefined);
  await Bun.sleep(20);
  const began = performance.now();
  await all.test.app.stop();
  expect(performance.now() - began).toBeLessThan(7_000);
  await expect(asking).rejects.toThrow("request to the platform was stopped");
}, 15_000);

test("what the platform gives for a refresh token is not lost where the database fails at first", async () => {
  const all = await connected();
  const { store, platform } = all.test.app;
  const { refreshToken } = all.remote.issuePair();
  await platform.connect(DOMAIN, { kind: "refresh", refreshToken });
  all.test.clock.ms += 3_600_000;
  const { renew } = store.connections;
  store.connections.renew = () => Promise.reject(new Error("database is locked"));
  await ask(all).catch(() => undefined);
  store.connections.renew = renew;
  expect(await ask(all)).toEqual({ customersCount: { count: 0 } });
  all.test.clock.ms += 3_600_000;
  expect(await ask(all)).toEqual({ customersCount: { count: 0 } });
});

describe("connecting", () => {
  test.each([
    ["the wrong shop", async ({ platform }: ConnectionResult) => platform.addShop("beta.myshopify.com").issueToken(), "refuses this token (HTTP 401)"],
    [
      "a token with too little granted",
      async ({ remote }: ConnectionResult) => {
        remote.scopes = ["read_customers"];
        return remote.issueToken();
      },
      "did not grant read_own_subscription_contracts, read_orders",
    ],
    ["a token that is none", async () => "nonsense", "refuses this token (HTTP 401)"],
  ])("with %s changes nothing", async (_name, token, message) => {
    const all = await connected();
    const { store, platform } = all.test.app;
    const before = await store.connections.find(all.shop.shop.id);
    const given = await token(all);
    const connecting = platform.connect(DOMAIN, { kind: "token", token: given });
    await expect(connecting).rejects.toThrow(message);
    expect(await store.connections.find(all.shop.shop.id)).toEqual(before);
  });
});
