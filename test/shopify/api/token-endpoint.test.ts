import { describe, expect, test } from "bun:test";
import { createTokenEndpoint } from "../../../src/shopify/api/token-endpoint.ts";
import { connected, DOMAIN, HOUR_MS, SECRET } from "../../support/connected.ts";

/** A token endpoint whose answer is replaced. */
async function endpointWith(status: number, body: unknown, app = {}) {
  const all = await connected();
  all.platform.fault = () => ({ status, body: JSON.stringify(body) });
  const defaults = { fetch, baseUrl: all.platform.url, clientId: "client", clientSecret: () => SECRET, now: () => 0 };
  return createTokenEndpoint({ ...defaults, ...app });
}

describe("the platform's answer to a request for a token", () => {
  test.each<[string, object, object]>([
    ["without a life counts for an hour", {}, { expiresAt: HOUR_MS }],
    ["with a life of 0 counts for an hour", { expires_in: 0 }, { expiresAt: HOUR_MS }],
    ["with a life counts seconds", { expires_in: 1.9 }, { expiresAt: 1_000 }],
    ["counts for 366 days at most", { expires_in: 1e12 }, { expiresAt: 366 * 86_400_000 }],
    ["keeps the refresh token if it has none", {}, { refreshToken: "old" }],
    ["has the next refresh token", { refresh_token: "new" }, { refreshToken: "new" }],
  ])("%s", async (_title, fields, expected) => {
    const endpoint = await endpointWith(200, { access_token: "t", ...fields });
    expect(await endpoint.byRefreshToken(DOMAIN, "old")).toMatchObject({ accessToken: "t", ...expected });
  });

  const NO_TOKEN = "the platform gave no token, HTTP 200";
  const UNKNOWN_ID = "the platform gave no token, HTTP 401: invalid_client; check the app's client id";
  test.each<[string, number, object, string]>([
    [
      "has HTTP 400 and an error",
      400,
      { error: "invalid_grant" },
      "the platform gave no token, HTTP 400: invalid_grant",
    ],
    ["has HTTP 401 and another error", 401, { error: "invalid_client" }, UNKNOWN_ID],
    ["has a very long error", 401, { error: "a".repeat(1_000) }, `HTTP 401: ${"a".repeat(100)}; check`],
    ["has HTTP 403 and no error", 403, {}, "not allow the app (HTTP 403)"],
    ["has no token", 200, {}, NO_TOKEN],
    ["has a token that cannot be in a header", 200, { access_token: "a b" }, NO_TOKEN],
    ["has an empty token", 200, { access_token: "" }, NO_TOKEN],
  ])("is a refusal if it %s", async (_title, status, body, text) => {
    const endpoint = await endpointWith(status, body);
    const message = expect.stringContaining(text);
    const expected = { reason: "unauthorized", needsMerchant: true, message, status };
    await expect(endpoint.byClientCredentials(DOMAIN)).rejects.toMatchObject(expected);
  });

  test("is a temporary failure if it is not JSON, because then the platform did not write it", async () => {
    const endpoint = await endpointWith(200, "the shop is being moved");
    const message = "the platform's answer to a request for a token is not JSON";
    await expect(endpoint.byClientCredentials(DOMAIN)).rejects.toMatchObject({ reason: "unavailable", message });
  });

  test.each([429, 500, 503])("is a temporary failure with HTTP %d", async (status) => {
    const endpoint = await endpointWith(status, {});
    const message = `the platform answered HTTP ${status} to a request for a token`;
    const expected = { reason: "unavailable", message, status };
    await expect(endpoint.byClientCredentials(DOMAIN)).rejects.toMatchObject(expected);
  });
});

test("a request for a token needs a client id and a secret", async () => {
  const answer = { access_token: "t" };
  const withoutId = await endpointWith(200, answer, { clientId: null });
  const expected = {
    reason: "unauthorized",
    message: "SDS_PLATFORM_CLIENT_ID is not set: it must be the client id of the app that bills",
  };
  await expect(withoutId.byClientCredentials(DOMAIN)).rejects.toMatchObject(expected);
  const clientSecret = () => {
    throw new Error("the secret file is gone");
  };
  const withoutSecret = await endpointWith(200, answer, { clientSecret });
  const gone = { reason: "unauthorized", message: "the secret file is gone" };
  await expect(withoutSecret.byClientCredentials(DOMAIN)).rejects.toMatchObject(gone);
});
