import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Tokens } from "../../../src/domain/platform/connection.ts";
import { createTokenEndpoint } from "../../../src/shopify/api/token-endpoint.ts";
import { type ConnectedShop, connected, DOMAIN, SECRET } from "../../support/connected.ts";
import { HOUR_MS } from "../../support/connected-shop.ts";
import { eventually } from "../../support/eventually.ts";
import { recordedClient } from "../../support/recorded-client.ts";

/** The platform's tokens for an app's credentials live a second less than a day. */
const LIFE_MS = 86_399_000;
const MARGIN_MS = 5 * 60_000;

/** Connects the shop with a pair of tokens. @returns its refresh token */
async function connectPair({ test, remote }: ConnectedShop): Promise<string> {
  const { refreshToken } = remote.issuePair();
  await test.app.platform.connect(DOMAIN, { kind: "refresh", refreshToken });
  return refreshToken;
}

/** Makes the tokens that another process would store. */
function otherTokens(all: ConnectedShop): Tokens {
  return { accessToken: all.remote.issueToken(), refreshToken: null, expiresAt: all.test.clock.ms + LIFE_MS };
}

describe("an access token", () => {
  test("is kept until five minutes before its end", async () => {
    const all = await connected();
    const { tokens, shop } = recordedClient(all);
    const first = await tokens.get(shop);
    all.test.clock.ms += LIFE_MS - MARGIN_MS - 1;
    expect(await tokens.get(shop)).toBe(first);
    all.test.clock.ms += 1;
    expect(await tokens.get(shop)).not.toBe(first);
    expect(all.platform.tokenRequests).toBe(2);
  });

  test("is renewed once for all callers that need it at the same time", async () => {
    const all = await connected();
    const { tokens, shop } = recordedClient(all);
    all.test.clock.ms += LIFE_MS;
    const renewed = await Promise.all([tokens.get(shop), tokens.get(shop), tokens.get(shop)]);
    expect(new Set(renewed).size).toBe(1);
    expect(all.platform.tokenRequests).toBe(2);
    all.test.clock.ms += LIFE_MS;
    await tokens.get(shop);
    expect(all.platform.tokenRequests).toBe(3);
  });

  test("is replaced before its end if the platform refuses it", async () => {
    const all = await connected();
    const { tokens, shop } = recordedClient(all);
    const refused = await tokens.get(shop);
    const next = await tokens.get(shop, { refused });
    expect(next).not.toBe(refused);
    expect(await tokens.get(shop, { refused })).toBe(next);
    expect(all.platform.tokenRequests).toBe(2);
  });

  test("from the operator has no end, and cannot be replaced", async () => {
    const all = await connected();
    const { tokens, shop } = recordedClient(all);
    const token = all.remote.issueToken();
    await all.test.app.platform.connect(DOMAIN, { kind: "token", token });
    all.test.clock.ms += 400 * 24 * HOUR_MS;
    expect(await tokens.get(shop)).toBe(token);
    const replaced = tokens.get(shop, { refused: token });
    await expect(replaced).rejects.toMatchObject({ reason: "unauthorized", status: 401 });
  });

  test("is renewed with the newest refresh token, and no refresh token is used twice", async () => {
    const all = await connected();
    const { tokens, shop, connections } = recordedClient(all);
    const refreshToken = await connectPair(all);
    for (let n = 0; n < 3; n += 1) {
      all.test.clock.ms += HOUR_MS;
      await Promise.all([tokens.get(shop), tokens.get(shop)]);
    }
    expect((await connections.tokens(shop.id))?.refreshToken).not.toBe(refreshToken);
    const requests = all.platform.requests.filter(({ operation }) => operation === "token");
    expect(requests.map(({ outcome }) => outcome)).toEqual(requests.map(() => "ok"));
  });

  test("is stored even if the caller stops waiting for it", async () => {
    const all = await connected();
    const { tokens, shop, connections } = recordedClient(all);
    const before = await tokens.get(shop);
    all.test.clock.ms += LIFE_MS;
    all.platform.fault = () => ({ delay: 50 });
    const stopping = new AbortController();
    const waiting = tokens.get(shop, { signal: stopping.signal });
    waiting.catch(() => undefined);
    await eventually(() => all.platform.tokenRequests > 1 || all.platform.requests.length > 1);
    stopping.abort(new Error("stopped"));
    await expect(waiting).rejects.toThrow("stopped");
    await tokens.drain();
    expect((await connections.tokens(shop.id))?.accessToken).not.toBe(before);
  });

  test("is refused for a shop that is not connected", async () => {
    const all = await connected();
    const { tokens, shop, connections } = recordedClient(all);
    await connections.disconnect(shop.id, Number.MAX_SAFE_INTEGER);
    await expect(tokens.get(shop)).rejects.toThrow("the shop is not connected to the platform");
  });

  test("is neither in the log nor unencrypted in the database", async () => {
    const all = await connected();
    const { tokens, shop } = recordedClient(all);
    const token = await tokens.get(shop);
    expect(all.test.logged.join("")).not.toContain(token);
    const files = ["sds.db", "sds.db-wal"].map((name) => readFileSync(join(all.test.folder, "data", name)));
    expect(files.some((bytes) => bytes.includes(token))).toBe(false);
  });
});

describe("a renewal in another process", () => {
  test("is waited for, and its token is used", async () => {
    const all = await connected();
    const { tokens, shop, connections, hooks, waits } = recordedClient(all);
    all.test.clock.ms += LIFE_MS;
    const { ms } = all.test.clock;
    await connections.beginRenewal(shop.id, "other", ms, ms + 60_000);
    const other = otherTokens(all);
    hooks.onSleep = async (nth) => (nth === 2 ? connections.renew(shop.id, other) : undefined);
    expect(await tokens.get(shop)).toBe(other.accessToken);
    expect(waits).toEqual([200, 200]);
    expect(all.platform.tokenRequests).toBe(1);
  });

  test("is used even if it ended just before this one began", async () => {
    const all = await connected();
    const { tokens, shop, connections } = recordedClient(all);
    all.test.clock.ms += LIFE_MS;
    const other = otherTokens(all);
    const { beginRenewal } = connections;
    connections.beginRenewal = async (...args) => {
      connections.beginRenewal = beginRenewal;
      await connections.renew(shop.id, other);
      return beginRenewal(...args);
    };
    expect(await tokens.get(shop)).toBe(other.accessToken);
    expect(all.platform.tokenRequests).toBe(1);
    // The renewal has ended, so the next one begins at once.
    all.test.clock.ms += LIFE_MS;
    expect(await tokens.get(shop)).not.toBe(other.accessToken);
  });

  test("that was killed before it stored the pair is repeated with the same refresh token", async () => {
    const all = await connected();
    await connectPair(all);
    all.test.clock.ms += HOUR_MS;
    const { connections, ...killed } = recordedClient(all);
    const { renew } = connections;
    const { promise: answered, resolve } = Promise.withResolvers<void>();
    connections.renew = async () => {
      resolve();
      return new Promise(() => undefined);
    };
    void killed.tokens.get(killed.shop);
    await answered;
    connections.renew = renew;
    const { tokens, shop, waits } = recordedClient(all);
    for (let n = 0; n < 2; n += 1) {
      expect(all.remote.tokens.isGood(await tokens.get(shop))).toBe(true);
      all.test.clock.ms += HOUR_MS;
    }
    expect(waits).toHaveLength(101);
  });

  test("is taken over after 20 seconds if it never ends", async () => {
    const all = await connected();
    const { tokens, shop, connections, waits } = recordedClient(all);
    all.test.clock.ms += LIFE_MS;
    const { ms } = all.test.clock;
    await connections.beginRenewal(shop.id, "other", ms, ms + 20_000);
    await tokens.get(shop);
    expect(all.platform.tokenRequests).toBe(2);
    expect(waits).toHaveLength(101);
  });

  test("is not waited for if the shop is disconnected", async () => {
    const all = await connected();
    const { tokens, shop, connections, hooks } = recordedClient(all);
    all.test.clock.ms += LIFE_MS;
    const { ms } = all.test.clock;
    await connections.beginRenewal(shop.id, "other", ms, ms + 60_000);
    hooks.onSleep = () => connections.disconnect(shop.id, Number.MAX_SAFE_INTEGER);
    await expect(tokens.get(shop)).rejects.toThrow("the shop is not connected to the platform");
  });
});

describe("a failed renewal", () => {
  test("lets the next one begin at once", async () => {
    const all = await connected();
    const { tokens, shop, waits } = recordedClient(all);
    all.test.clock.ms += LIFE_MS;
    all.platform.fault = () => ({ status: 503, headers: { "Retry-After": "7" } });
    const message = "the platform answered HTTP 503 to a request for a token";
    await expect(tokens.get(shop)).rejects.toMatchObject({ message, reason: "unavailable", retryAfterMs: 7000 });
    all.platform.fault = () => undefined;
    await tokens.get(shop);
    expect(waits).toEqual([]);
  });

  test("of the database does not lose the new pair: the next call stores it", async () => {
    const all = await connected();
    const { tokens, shop, connections } = recordedClient(all);
    await connectPair(all);
    all.test.clock.ms += HOUR_MS;
    const { renew } = connections;
    connections.renew = () => Promise.reject(new Error("database is locked"));
    await expect(tokens.get(shop)).rejects.toThrow("database is locked");
    connections.renew = renew;
    const requests = all.platform.tokenRequests;
    await tokens.get(shop);
    expect(all.platform.tokenRequests).toBe(requests);
    all.test.clock.ms += HOUR_MS;
    await tokens.get(shop);
    expect(all.platform.tokenRequests).toBe(requests + 1);
  });

  test("of the database does not replace a newer pair that another process has stored", async () => {
    const all = await connected();
    await connectPair(all);
    all.test.clock.ms += HOUR_MS;
    const { tokens, shop, connections } = recordedClient(all);
    const { renew } = connections;
    connections.renew = () => Promise.reject(new Error("database is locked"));
    await expect(tokens.get(shop)).rejects.toThrow("database is locked");
    connections.renew = renew;
    const stored = await recordedClient(all).tokens.get(shop);
    expect(await tokens.get(shop)).toBe(stored);
    all.test.clock.ms += HOUR_MS;
    expect(all.remote.tokens.isGood(await tokens.get(shop))).toBe(true);
  });
});

/** A token endpoint whose answer is replaced. */
async function endpointWith(fault: { status: number; body: unknown }, app = {}) {
  const all = await connected();
  all.platform.fault = () => ({ ...fault, body: JSON.stringify(fault.body) });
  const defaults = { fetch, baseUrl: all.platform.url, clientId: "client", clientSecret: () => SECRET, now: () => 0 };
  return createTokenEndpoint({ ...defaults, ...app });
}

describe("the platform's answer to a request for a token", () => {
  const answers: [string, { status: number; body: unknown }, object][] = [
    ["without a life has no end", { status: 200, body: { access_token: "t" } }, { expiresAt: null }],
    ["with a life of 0 has no end", { status: 200, body: { access_token: "t", expires_in: 0 } }, { expiresAt: null }],
    ["with a life counts seconds", { status: 200, body: { access_token: "t", expires_in: 1.9 } }, { expiresAt: 1_000 }],
    [
      "counts for 366 days at most",
      { status: 200, body: { access_token: "t", expires_in: 1e12 } },
      { expiresAt: 366 * 86_400_000 },
    ],
    ["keeps the refresh token if it has none", { status: 200, body: { access_token: "t" } }, { refreshToken: "old" }],
    [
      "has the next refresh token",
      { status: 200, body: { access_token: "t", refresh_token: "new" } },
      { refreshToken: "new" },
    ],
  ];

  test.each(answers)("%s", async (_title, fault, expected) => {
    const endpoint = await endpointWith(fault);
    expect(await endpoint.byRefreshToken(DOMAIN, "old")).toMatchObject({ accessToken: "t", ...expected });
  });

  test.each<[string, { status: number; body: unknown }, object]>([
    [
      "has HTTP 400 and an error",
      { status: 400, body: { error: "invalid_grant" } },
      { message: "the refresh token has ended (HTTP 400: invalid_grant)", status: 400 },
    ],
    [
      "has HTTP 401 and another error",
      { status: 401, body: { error: "invalid_client" } },
      { message: "the platform gave no token, HTTP 401: invalid_client; check the app's client id", status: 401 },
    ],
    ["has HTTP 403 and no error", { status: 403, body: {} }, { message: "not allow the app (HTTP 403)", status: 403 }],
    ["has no token", { status: 200, body: {} }, { message: "the platform gave no token, HTTP 200", status: 200 }],
    [
      "has a token that cannot be in a header",
      { status: 200, body: { access_token: "a b" } },
      { message: "the platform gave no token, HTTP 200", status: 200 },
    ],
    [
      "has an empty token",
      { status: 200, body: { access_token: "" } },
      { message: "the platform gave no token, HTTP 200", status: 200 },
    ],
  ])("is a refusal if it %s", async (_title, fault, { message = "", ...rest }: { message?: string }) => {
    const endpoint = await endpointWith(fault);
    const expected = {
      reason: "unauthorized",
      needsMerchant: true,
      message: expect.stringContaining(message),
      ...rest,
    };
    await expect(endpoint.byClientCredentials(DOMAIN)).rejects.toMatchObject(expected);
  });

  test("is a temporary failure if it is not JSON, because then the platform did not write it", async () => {
    const endpoint = await endpointWith({ status: 200, body: "the shop is being moved" });
    const message = "the platform's answer to a request for a token is not JSON";
    await expect(endpoint.byClientCredentials(DOMAIN)).rejects.toMatchObject({ reason: "unavailable", message });
  });

  test.each([429, 500, 503])("is a temporary failure with HTTP %d", async (status) => {
    const endpoint = await endpointWith({ status, body: {} });
    const message = `the platform answered HTTP ${status} to a request for a token`;
    await expect(endpoint.byClientCredentials(DOMAIN)).rejects.toMatchObject({
      reason: "unavailable",
      message,
      status,
    });
  });
});

test("a request for a token needs a client id and a secret", async () => {
  const answer = { status: 200, body: { access_token: "t" } };
  const withoutId = await endpointWith(answer, { clientId: null });
  const expected = { reason: "unauthorized", message: "SDS_PLATFORM_CLIENT_ID is not set" };
  await expect(withoutId.byClientCredentials(DOMAIN)).rejects.toMatchObject(expected);
  const clientSecret = () => {
    throw new Error("the secret file is gone");
  };
  const withoutSecret = await endpointWith(answer, { clientSecret });
  const gone = { reason: "unauthorized", message: "the secret file is gone" };
  await expect(withoutSecret.byClientCredentials(DOMAIN)).rejects.toMatchObject(gone);
});
