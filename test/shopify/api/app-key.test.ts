import { describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { publicAppKey, readAppKey } from "../../../src/shopify/api/app-key.ts";
import { createTokenEndpoint } from "../../../src/shopify/api/token-endpoint.ts";
import { type ConnectedShop, connected, DOMAIN, HOUR_MS } from "../../support/connected.ts";

const PEM = { type: "pkcs8", format: "pem" } as const;
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const OTHER = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
const KEY = readAppKey(privateKey.export(PEM));
/** The key as a JWK, with these parts replaced. */
const jwkText = (parts: object) => JSON.stringify({ ...privateKey.export({ format: "jwk" }), ...parts });
const MARGIN_MS = 5 * 60_000;

/** Connects a shop with the app's key. The platform has the public half of the key. */
async function connectedByKey(): Promise<ConnectedShop> {
  const all = await connected();
  all.platform.appKey.jwk = publicAppKey(KEY);
  await all.test.app.platform.connect(DOMAIN, { kind: "app_key", appKey: KEY });
  return all;
}

/** The requests for tokens so far, with their outcomes. */
const tokenRequests = ({ platform }: ConnectedShop) =>
  platform.requests.filter(({ operation }) => operation === "token").map(({ outcome }) => outcome);

function endpoint({ platform, test }: ConnectedShop) {
  const noSecret = () => {
    throw new Error("the secret was read");
  };
  const { now } = test.clock;
  return createTokenEndpoint({ fetch, baseUrl: platform.url, clientId: "client", clientSecret: noSecret, now });
}

describe("a connection by the app's own key", () => {
  test("gets a token for an hour, and the next one by itself", async () => {
    const all = await connectedByKey();
    const { connections } = all.test.app.store;
    const { id } = all.shop.shop;
    const first = await connections.tokens(id);
    expect(await connections.find(id)).toMatchObject({ kind: "app_key", trouble: null });
    expect(first).toMatchObject({ refreshToken: null, appKey: KEY, expiresAt: all.test.clock.ms + HOUR_MS });
    all.remote.seed({ contracts: 1 });
    all.test.clock.ms += HOUR_MS - MARGIN_MS;
    await all.load();
    const next = await connections.tokens(id);
    expect(next).toMatchObject({ appKey: KEY, expiresAt: all.test.clock.ms + HOUR_MS });
    expect(next?.accessToken).not.toBe(first?.accessToken);
    expect(await all.shop.all("subscriptions")).toHaveLength(1);
  });

  test("gets another token if the platform revokes one", async () => {
    const all = await connectedByKey();
    all.remote.tokens.revoke();
    await all.load();
    expect(tokenRequests(all)).toEqual(["ok", "ok", "ok"]);
  });

  test("does not need the client secret", async () => {
    const all = await connectedByKey();
    expect(await endpoint(all).byAppKey(DOMAIN, KEY)).toMatchObject({ appKey: KEY });
  });

  test.each([
    ["RS256", "token endpoint", 1],
    ["RS256", "shop", 2],
    ["PS256", "token endpoint", 3],
    ["PS256", "shop", 4],
  ] as const)(
    "works if the platform wants %s and the %s as audience, and then keeps to it",
    async (alg, audience, tries) => {
      const all = await connected();
      const { appKey } = all.platform;
      Object.assign(appKey, { jwk: publicAppKey(KEY), alg, audience });
      const from = tokenRequests(all).length;
      const { byAppKey } = endpoint(all);
      await byAppKey(DOMAIN, KEY);
      await byAppKey(DOMAIN, KEY);
      const refused = Array<string>(tries - 1).fill("unauthorized");
      expect(tokenRequests(all).slice(from)).toEqual([...refused, "ok", "ok"] as never);
    },
  );

  test("keeps to the algorithm of a JWK", async () => {
    const all = await connected();
    const jwk = { ...privateKey.export({ format: "jwk" }), alg: "PS256", kid: "mine" };
    const key = readAppKey(JSON.stringify(jwk));
    expect(publicAppKey(key)).toEqual({ kty: "RSA", use: "sig", alg: "PS256", kid: "mine", n: jwk.n, e: jwk.e });
    Object.assign(all.platform.appKey, { jwk: publicAppKey(key), alg: "PS256" });
    const from = tokenRequests(all).length;
    await endpoint(all).byAppKey(DOMAIN, key);
    expect(tokenRequests(all).slice(from)).toEqual(["ok"]);
  });

  test("works while our clock is ahead", async () => {
    const all = await connectedByKey();
    all.test.clock.step(HOUR_MS);
    await all.load();
    expect(all.platform.invalid).toEqual([]);
  });

  test("is refused for another key, changes nothing, and says what to check", async () => {
    const all = await connected();
    all.platform.appKey.jwk = publicAppKey(readAppKey(OTHER.export(PEM)));
    const connecting = all.test.app.platform.connect(DOMAIN, { kind: "app_key", appKey: KEY });
    await expect(connecting).rejects.toThrow(
      "the platform gave no token, HTTP 401: invalid_client; check whether the developer dashboard has the public half",
    );
    const { id } = all.shop.shop;
    expect(await all.test.app.store.connections.find(id)).toMatchObject({ kind: "client_credentials" });
  });

  test("does not try other forms while the platform is down", async () => {
    const all = await connectedByKey();
    const from = all.platform.requests.length;
    all.platform.fault = () => ({ status: 503 });
    await expect(endpoint(all).byAppKey(DOMAIN, KEY)).rejects.toMatchObject({ reason: "unavailable" });
    expect(all.platform.requests.slice(from)).toHaveLength(1);
  });
});

describe("the app's key", () => {
  test("is read from PKCS#8, PKCS#1 and a JWK, with the same id", () => {
    const texts = [
      privateKey.export(PEM),
      privateKey.export({ type: "pkcs1", format: "pem" }),
      JSON.stringify(privateKey.export({ format: "jwk" })),
    ];
    expect(new Set(texts.map(readAppKey)).size).toBe(1);
    expect(Object.keys(publicAppKey(KEY))).toEqual(["kty", "kid", "use", "alg", "n", "e"]);
  });

  test.each([
    [
      "a public key",
      generateKeyPairSync("rsa", { modulusLength: 2048 }).publicKey.export({ type: "spki", format: "pem" }),
      "cannot be read",
    ],
    ["a short key", generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey.export(PEM), "too short"],
    ["a key of a curve", generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export(PEM), "not an RSA key"],
    ["nonsense", "hello", "cannot be read"],
    ["parts of two keys", jwkText({ n: OTHER.export({ format: "jwk" }).n }), "cannot be read"],
    ["an id that is no text", jwkText({ kid: { a: 1 } }), "the id of the app's key is not a text"],
    [
      "a JWK of another algorithm",
      JSON.stringify({ ...privateKey.export({ format: "jwk" }), alg: "RS512" }),
      "another algorithm",
    ],
  ])("cannot be %s", (_what, text, message) => {
    expect(() => readAppKey(String(text))).toThrow(message);
  });
});
