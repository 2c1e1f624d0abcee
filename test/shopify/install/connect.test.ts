import { describe, expect, test } from "bun:test";
import { answerWith, type ConnectedShop, connected, DOMAIN } from "../../support/connected.ts";
import type { Fault } from "../../support/platform/faults.ts";

const BETA = "beta.myshopify.com";

function connection({ test }: ConnectedShop, shopId: number) {
  return test.app.store.connections.find(shopId);
}

describe("connecting a shop", () => {
  test("adds a new shop with its currency, and stores the granted scopes", async () => {
    const all = await connected();
    all.platform.addShop(BETA, { currency: "JPY" });
    const result = await all.test.app.platform.connect(BETA, { kind: "client_credentials" });
    expect(result).toMatchObject({ kind: "client_credentials", shop: { domain: BETA, plan: "pro", currency: "JPY" } });
    const granted = ["read_own_subscription_contracts", "read_customers", "read_orders", "read_products"];
    expect(result.scopes).toEqual(granted);
    expect(await connection(all, result.shop.id)).toMatchObject({ kind: "client_credentials", scopes: granted });
    expect(await all.test.app.store.audit.list(result.shop.id, {}, {}, 9)).toMatchObject([
      { action: "shop.connected", after: { kind: "client_credentials", scopes: granted.join(", ") } },
    ]);
  });

  test("updates the currency and the plan of a known shop", async () => {
    const all = await connected();
    all.remote.setCurrency("EUR");
    all.remote.setAppSubscription({ name: "Free", status: "ACTIVE" });
    const { shop } = await all.test.app.platform.connect(DOMAIN, { kind: "client_credentials" });
    expect(shop).toMatchObject({ id: all.shop.shop.id, currency: "EUR", plan: "free" });
  });

  test("takes the free plan if all subscriptions to the app have ended", async () => {
    const all = await connected();
    all.remote.setAppSubscription({ name: "Pro", status: "CANCELLED" });
    const { shop } = await all.test.app.platform.connect(DOMAIN, { kind: "client_credentials" });
    expect(shop.plan).toBe("free");
  });

  test("says what to do about a refresh token that has expired, and not to connect again", async () => {
    const all = await connected();
    const connecting = all.test.app.platform.connect(DOMAIN, { kind: "refresh", refreshToken: "shprt_old" });
    await expect(connecting).rejects.toThrow(
      "the refresh token has expired, or another program has used it (HTTP 400: invalid_grant); get another one",
    );
  });

  test("keeps the pair that a refresh token gave, even if the rest fails", async () => {
    const all = await connected();
    const remote = all.platform.addShop(BETA);
    const { connect } = all.test.app.platform;
    const { refreshToken } = remote.issuePair();
    all.platform.fault = ({ operation }) => (operation === "token" ? undefined : { status: 404 });
    await expect(connect(BETA, { kind: "refresh", refreshToken })).rejects.toThrow(
      `${BETA}: the platform does not know the shop`,
    );
    const shop = await all.test.app.store.shops.find(BETA);
    expect(shop).toMatchObject({ plan: "pro", currency: "USD" });
    expect(await all.test.app.store.audit.list(shop?.id ?? 0, {}, {}, 9)).toEqual([]);
    const tokens = await all.test.app.store.connections.tokens(shop?.id ?? 0);
    all.platform.fault = () => undefined;
    const next = { kind: "refresh" as const, refreshToken: tokens?.refreshToken ?? "" };
    expect(next.refreshToken).not.toBe(refreshToken);
    expect(await connect(BETA, next)).toMatchObject({ kind: "refresh", shop: { id: shop?.id } });
  });
});

describe("connecting changes nothing", () => {
  /** Issues a valid token, and then replaces all answers of the platform. */
  const tokenBefore =
    (answer: Fault) =>
    ({ platform, remote }: ConnectedShop) => {
      platform.fault = () => answer;
      return remote.issueToken();
    };

  test("while the shop is being removed, and spends no refresh token", async () => {
    const all = await connected();
    const { refreshToken } = all.remote.issuePair();
    const { app } = all.test;
    await app.store.shops.beginRemoval(DOMAIN, 0);
    const before = all.platform.requests.length;
    await expect(app.platform.connect(DOMAIN, { kind: "refresh", refreshToken })).rejects.toThrow("is being removed");
    expect(all.platform.requests.length).toBe(before);
    expect(await app.store.shops.list()).toEqual([]);
  });

  test.each<[string, (all: ConnectedShop) => string, string]>([
    [
      "with a token of another shop",
      ({ platform }) => platform.addShop(BETA).issueToken(),
      `${DOMAIN} refuses this token (HTTP 401)`,
    ],
    [
      "with a token that was granted too little",
      ({ remote }) => {
        remote.scopes = ["read_customers"];
        return remote.issueToken();
      },
      `${DOMAIN} did not grant read_own_subscription_contracts, read_orders: add what is missing`,
    ],
    ["with a text that is not a token", () => "nonsense", "refuses this token (HTTP 401)"],
    [
      "while the shop is frozen",
      tokenBefore({ status: 402 }),
      `${DOMAIN}: the shop is frozen, because a bill is unpaid (HTTP 402)`,
    ],
    [
      "if the platform does not allow the app",
      tokenBefore({ status: 403 }),
      `${DOMAIN}: the shop or the platform does not allow the app (HTTP 403)`,
    ],
    [
      "if the platform answers for another shop",
      tokenBefore(answerWith({ shop: { myshopifyDomain: BETA, currencyCode: "USD" }, currentAppInstallation: {} })),
      `these credentials are for ${BETA}, not for ${DOMAIN}`,
    ],
    [
      "if the platform refuses the query",
      tokenBefore(answerWith({}, [{ message: "not now" }])),
      `${DOMAIN} answered HTTP 200: not now`,
    ],
  ])("%s", async (_title, giveToken, message) => {
    const all = await connected();
    const { store, platform } = all.test.app;
    const before = await connection(all, all.shop.shop.id);
    const token = giveToken(all);
    await expect(platform.connect(DOMAIN, { kind: "token", token })).rejects.toThrow(message);
    expect(await connection(all, all.shop.shop.id)).toEqual(before);
    expect(await store.shops.list()).toHaveLength(1);
  });
});
