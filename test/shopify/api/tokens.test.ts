import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Tokens } from "../../../src/domain/platform/connection.ts";
import type { ConnectionStore } from "../../../src/store/port/connections.ts";
import { type ConnectedShop, DOMAIN, HOUR_MS } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import { recorded, recordedClient } from "../../support/recorded-client.ts";

/** The lifetime of the platform's tokens for an app's credentials: a second less than a day. */
const LIFE_MS = 86_399_000;
const MARGIN_MS = 5 * 60_000;

/** Connects the shop with a pair of tokens. @returns its refresh token */
async function connectPair({ test, remote }: ConnectedShop): Promise<string> {
  const { refreshToken } = remote.issuePair();
  await test.app.platform.connect(DOMAIN, { kind: "refresh", refreshToken });
  return refreshToken;
}

/** Like `recorded`, with an expired access token. */
async function ended() {
  const all = await recorded();
  all.all.test.clock.ms += LIFE_MS;
  return all;
}

/** Like `ended`, and another process has begun a renewal. */
async function renewedElsewhere(leaseMs: number) {
  const all = await ended();
  const { ms } = all.all.test.clock;
  await all.connections.beginRenewal(all.shop.id, "other", ms, ms + leaseMs);
  return all;
}

/** Like `recorded`, with a pair of tokens whose access token has expired. */
async function endedPair() {
  const all = await recorded();
  await connectPair(all.all);
  all.all.test.clock.ms += HOUR_MS;
  return all;
}

/** Like `endedPair`, and the database failed to store the next pair. */
async function unstoredPair() {
  const all = await endedPair();
  const { tokens, shop, connections } = all;
  const { renew } = connections;
  connections.renew = () => Promise.reject(new Error("database is locked"));
  await expect(tokens.get(shop)).rejects.toThrow("database is locked");
  connections.renew = renew;
  return all;
}

/** Makes tokens as another process would store them. */
function otherTokens(all: ConnectedShop): Tokens {
  return { accessToken: all.remote.issueToken(), refreshToken: null, expiresAt: all.test.clock.ms + LIFE_MS };
}

/** Stores tokens, as the renewal of another process does. */
async function storeTokens(connections: ConnectionStore, shopId: number, next: Tokens): Promise<void> {
  const before = await connections.tokens(shopId);
  if (before !== undefined) await connections.renew(shopId, next, before);
}

describe("an access token", () => {
  test("is kept until five minutes before its end", async () => {
    const { all, tokens, shop } = await recorded();
    const first = await tokens.get(shop);
    all.test.clock.ms += LIFE_MS - MARGIN_MS - 1;
    expect(await tokens.get(shop)).toBe(first);
    all.test.clock.ms += 1;
    expect(await tokens.get(shop)).not.toBe(first);
    expect(all.platform.tokenRequests).toBe(2);
  });

  test("is renewed within the hour if the platform does not say when it ends", async () => {
    const { all, tokens, shop } = await recorded();
    all.remote.tokens.namesLife = false;
    await connectPair(all);
    const first = await tokens.get(shop);
    all.test.clock.ms += HOUR_MS - MARGIN_MS;
    expect(await tokens.get(shop)).not.toBe(first);
  });

  test("is renewed once for all callers that need it at the same time", async () => {
    const { all, tokens, shop } = await ended();
    const renewed = await Promise.all([tokens.get(shop), tokens.get(shop), tokens.get(shop)]);
    expect(new Set(renewed).size).toBe(1);
    expect(all.platform.tokenRequests).toBe(2);
    all.test.clock.ms += LIFE_MS;
    await tokens.get(shop);
    expect(all.platform.tokenRequests).toBe(3);
  });

  test("is replaced before its end if the platform refuses it", async () => {
    const { all, tokens, shop } = await recorded();
    const refused = await tokens.get(shop);
    const next = await tokens.get(shop, { refused });
    expect(next).not.toBe(refused);
    expect(await tokens.get(shop, { refused })).toBe(next);
    expect(all.platform.tokenRequests).toBe(2);
  });

  test("from the operator has no end, and cannot be replaced", async () => {
    const { all, tokens, shop } = await recorded();
    const token = all.remote.issueToken();
    await all.test.app.platform.connect(DOMAIN, { kind: "token", token });
    all.test.clock.ms += 400 * 24 * HOUR_MS;
    expect(await tokens.get(shop)).toBe(token);
    const replaced = tokens.get(shop, { refused: token });
    await expect(replaced).rejects.toMatchObject({ reason: "unauthorized", status: 401 });
  });

  test.each([
    ["while the refresh token lives says that another program has used it", HOUR_MS, "another program, such as the"],
    [
      "after 90 days says that the refresh token has expired",
      91 * 24 * HOUR_MS,
      "the refresh token has expired (HTTP 400",
    ],
  ])("that is not renewed %s", async (_title, laterMs, text) => {
    const { all, tokens, shop, connections } = await recorded();
    await connectPair(all);
    // The billing app has the program's refresh token too. It uses this token, and then the token that it gets.
    const request = (token: unknown) => ({ grant_type: "refresh_token", refresh_token: token });
    const { refreshToken } = (await connections.tokens(shop.id)) ?? {};
    const next = all.remote.tokens.grant(request(refreshToken), "").body["refresh_token"];
    all.remote.tokens.grant(request(next), "");
    all.test.clock.ms += laterMs;
    await expect(tokens.get(shop)).rejects.toThrow(text);
  });

  test("is renewed with the newest refresh token, and no refresh token is used twice", async () => {
    const { all, tokens, shop, connections } = await recorded();
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
    const { all, tokens, shop, connections } = await recorded();
    const before = await tokens.get(shop);
    all.test.clock.ms += LIFE_MS;
    const answer = Promise.withResolvers<void>();
    all.platform.fault = () => ({ until: answer.promise });
    const stopping = new AbortController();
    const waiting = tokens.get(shop, { signal: stopping.signal });
    waiting.catch(() => undefined);
    await eventually(() => all.platform.tokenRequests > 1 || all.platform.requests.length > 1);
    stopping.abort(new Error("stopped"));
    await expect(waiting).rejects.toThrow("stopped");
    answer.resolve();
    await tokens.drain();
    expect((await connections.tokens(shop.id))?.accessToken).not.toBe(before);
  });

  test("is refused for a shop that is not connected", async () => {
    const { tokens, shop, connections } = await recorded();
    await connections.disconnect(shop.id, Number.MAX_SAFE_INTEGER);
    await expect(tokens.get(shop)).rejects.toThrow("the shop is not connected to the platform");
  });

  test("is neither in the log nor unencrypted in the database", async () => {
    const { all, tokens, shop } = await recorded();
    const token = await tokens.get(shop);
    expect(all.test.logged.join("")).not.toContain(token);
    const files = ["sds.db", "sds.db-wal"].map((name) => readFileSync(join(all.test.folder, "data", name)));
    expect(files.some((bytes) => bytes.includes(token))).toBe(false);
  });
});

test("a connection that the operator makes while renewed tokens are stored is kept", async () => {
  const { all, tokens, shop, connections } = await endedPair();
  const given = { accessToken: all.remote.issueToken(), refreshToken: null, expiresAt: null };
  const stored = connections.tokens;
  let reads = 0;
  connections.tokens = async (shopId) => {
    const before = await stored(shopId);
    reads += 1;
    // The third read is the last read before the program stores the tokens.
    if (reads === 3) await connections.connect(shopId, "token", given, [], all.test.clock.ms);
    return before;
  };
  await tokens.get(shop);
  expect(await stored(shop.id)).toEqual(given);
  expect(await tokens.get(shop)).toBe(given.accessToken);
});

describe("a renewal in another process", () => {
  test("is waited for, and its token is used", async () => {
    const { all, tokens, shop, connections, hooks, waits } = await renewedElsewhere(60_000);
    const other = otherTokens(all);
    hooks.onSleep = async (nth) => (nth === 2 ? storeTokens(connections, shop.id, other) : undefined);
    expect(await tokens.get(shop)).toBe(other.accessToken);
    expect(waits).toEqual([200, 200]);
    expect(all.platform.tokenRequests).toBe(1);
  });

  test("is used even if it ended just before this one began", async () => {
    const { all, tokens, shop, connections } = await ended();
    const other = otherTokens(all);
    const { beginRenewal } = connections;
    connections.beginRenewal = async (...args) => {
      connections.beginRenewal = beginRenewal;
      await storeTokens(connections, shop.id, other);
      return beginRenewal(...args);
    };
    expect(await tokens.get(shop)).toBe(other.accessToken);
    expect(all.platform.tokenRequests).toBe(1);
    // The earlier renewal no longer holds the lease, so the next renewal begins at once.
    all.test.clock.ms += LIFE_MS;
    expect(await tokens.get(shop)).not.toBe(other.accessToken);
  });

  test("that was killed before it stored the pair is repeated with the same refresh token", async () => {
    const { all, connections, ...killed } = await endedPair();
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
    const { all, tokens, shop, waits } = await renewedElsewhere(20_000);
    await tokens.get(shop);
    expect(all.platform.tokenRequests).toBe(2);
    expect(waits).toHaveLength(101);
  });

  test("is not waited for if the shop is disconnected", async () => {
    const { tokens, shop, connections, hooks } = await renewedElsewhere(60_000);
    hooks.onSleep = () => connections.disconnect(shop.id, Number.MAX_SAFE_INTEGER);
    await expect(tokens.get(shop)).rejects.toThrow("the shop is not connected to the platform");
  });
});

describe("a failed renewal", () => {
  test("lets the next one begin at once", async () => {
    const { all, tokens, shop, waits } = await ended();
    all.platform.fault = () => ({ status: 503, headers: { "Retry-After": "7" } });
    const message = "the platform answered HTTP 503 to a request for a token";
    await expect(tokens.get(shop)).rejects.toMatchObject({ message, reason: "unavailable", retryAfterMs: 7000 });
    all.platform.fault = () => undefined;
    await tokens.get(shop);
    expect(waits).toEqual([]);
  });

  test("of the database does not lose the new pair: the next call stores it", async () => {
    const { all, tokens, shop } = await unstoredPair();
    const requests = all.platform.tokenRequests;
    await tokens.get(shop);
    expect(all.platform.tokenRequests).toBe(requests);
    all.test.clock.ms += HOUR_MS;
    await tokens.get(shop);
    expect(all.platform.tokenRequests).toBe(requests + 1);
  });

  test("of the database does not replace a newer pair that another process has stored", async () => {
    const { all, tokens, shop } = await unstoredPair();
    const stored = await recordedClient(all).tokens.get(shop);
    expect(await tokens.get(shop)).toBe(stored);
    all.test.clock.ms += HOUR_MS;
    expect(all.remote.tokens.isGood(await tokens.get(shop))).toBe(true);
  });
});
