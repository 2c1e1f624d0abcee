import { describe, expect, test } from "bun:test";
import { createSign, generateKeyPairSync } from "node:crypto";
import { createIdTokenVerifier } from "../../../src/shopify/install/id-token.ts";
import { type IdTokenClaims, idTokenClaims, signIdToken } from "../../support/platform/id-token.ts";

const NOW = Date.parse("2026-11-23T12:00:00.000Z");
const NOW_S = NOW / 1000;
const SHOP = "alpha.myshopify.com";
const CLIENT = "client";
const SECRET = "the-app-client-secret";
const OLDER = "the-secret-before";

const verify = createIdTokenVerifier({ clientId: CLIENT, secrets: () => [SECRET, OLDER], now: () => NOW });

const claims = (more: IdTokenClaims = {}) => idTokenClaims(SHOP, CLIENT, NOW, more);
const signed = (more: IdTokenClaims = {}, secret = SECRET) => signIdToken(claims(more), { secret });
const withHeader = (header: Record<string, unknown>, hash = "sha256") =>
  signIdToken(claims(), { secret: SECRET, header, hash });
/** Signs the platform's claims without the named claims. */
const without = (...names: string[]) =>
  signIdToken(Object.fromEntries(Object.entries(claims()).filter(([name]) => !names.includes(name))), {
    secret: SECRET,
  });
const unsigned = (header: Record<string, unknown>) =>
  `${[header, claims()].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url")).join(".")}.`;

function rsaSigned(): string {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const text = unsigned({ alg: "RS256", typ: "JWT" }).slice(0, -1);
  return `${text}.${createSign("RSA-SHA256").update(text).sign(privateKey, "base64url")}`;
}

describe("an ID token is accepted", () => {
  test.each<[string, string]>([
    ["as the platform makes it", signed()],
    ["with an older secret of the file", signed({}, OLDER)],
    ["4 seconds after its end", signed({ exp: NOW_S - 4, nbf: NOW_S - 64, iat: NOW_S - 64 })],
    ["5 seconds before its start", signed({ nbf: NOW_S + 5, iat: NOW_S + 5 })],
    ["without a `jti`, because a token serves many requests", without("jti")],
  ])("%s", async (_title, token) => {
    expect(await verify(token)).toMatchObject({ shop: SHOP, staff: "42", session: "a2b3c4d5e6f7" });
  });

  test("and says when the platform made it", async () => {
    expect(await verify(signed({ iat: NOW_S - 3 }))).toMatchObject({ issuedAt: NOW - 3_000 });
    // The time is stored as whole milliseconds.
    expect(await verify(signed({ iat: NOW_S - 3.0004 }))).toMatchObject({ issuedAt: NOW - 3_001 });
  });
});

describe("a forged or unfit ID token is refused", () => {
  const { sub: _sub, ...customer } = claims();
  test.each<[string, string, string]>([
    ["an empty text", "", "not a JWT"],
    ["two parts", signed().split(".").slice(0, 2).join("."), "not a JWT"],
    ["four parts", `${signed()}.AAAA`, "not a JWT"],
    ["a text with line ends", `${signed()}\n`, "not a JWT"],
    ["a text of 5,000 characters", "a".repeat(5_000), "not a JWT"],
    ["a header that is not JSON", `AAAA.${signed().split(".").slice(1).join(".")}`, "not a JWT"],
    ...["none", "None", "NONE", "nOnE"].map((alg): [string, string, string] => [
      `the algorithm ${alg} without a signature`,
      unsigned({ alg, typ: "JWT" }),
      "wrong algorithm",
    ]),
    ["the algorithm none with a signature", withHeader({ alg: "none" }), "wrong algorithm"],
    ["HS256 without a signature", unsigned({ alg: "HS256", typ: "JWT" }), "wrong signature"],
    ["RS256", rsaSigned(), "wrong algorithm"],
    ["RS256 in the header of an HMAC", withHeader({ alg: "RS256" }), "wrong algorithm"],
    ["HS384", withHeader({ alg: "HS384" }, "sha384"), "wrong algorithm"],
    ["HS512", withHeader({ alg: "HS512" }, "sha512"), "wrong algorithm"],
    ["the algorithm in another case", withHeader({ alg: "hs256" }), "wrong algorithm"],
    ["no algorithm", withHeader({ typ: "JWT" }), "wrong algorithm"],
    ["a list of algorithms", withHeader({ alg: ["HS256"] }), "wrong algorithm"],
    ["a critical header", withHeader({ alg: "HS256", crit: ["exp"], exp: 1 }), "critical header"],
    ["a critical b64", withHeader({ alg: "HS256", crit: ["b64"], b64: true }), "critical header"],
    ["a wrong secret", signed({}, "wrong"), "wrong signature"],
    ["an empty secret", signed({}, ""), "wrong signature"],
    [
      "a changed payload",
      signed().replace(/\.[^.]+\./, `.${Buffer.from("{}").toString("base64url")}.`),
      "wrong signature",
    ],
    ["another app", signed({ aud: "another" }), "for another app"],
    ["a list of apps", signed({ aud: [CLIENT] }), "for another app"],
    ["a list of two apps", signed({ aud: ["another", CLIENT] }), "for another app"],
    ["an end in the past", signed({ exp: NOW_S - 11, nbf: NOW_S - 71 }), "expired"],
    ["a start in the future", signed({ nbf: NOW_S + 11 }), "not valid yet"],
    ["a time of making in the future", signed({ iat: NOW_S + 11 }), "not valid yet"],
    ["a life of a day", signed({ exp: NOW_S + 86_400 }), "lives too long"],
    ["an endless life", signed({ exp: 1e300 }), "lives too long"],
    ...["exp", "nbf", "iat", "aud", "iss", "dest", "sub", "sid"].map((name): [string, string, string] => [
      `no ${name}`,
      without(name),
      "a claim is missing or has a wrong type",
    ]),
    ...["exp", "nbf", "iat"].map((name): [string, string, string] => [
      `${name} as a text`,
      signed({ [name]: String(NOW_S + 5) }),
      "a claim is missing or has a wrong type",
    ]),
    ...["exp", "nbf", "iat", "dest", "sid", "sub"].map((name): [string, string, string] => [
      `${name} null`,
      signed({ [name]: null }),
      "a claim is missing or has a wrong type",
    ]),
    ["an issuer of another shop", signed({ iss: "https://beta.myshopify.com/admin" }), "wrong issuer"],
    ["an issuer without the path", signed({ iss: `https://${SHOP}` }), "wrong issuer"],
    ["an issuer with more behind it", signed({ iss: `https://${SHOP}/admin/` }), "wrong issuer"],
    ...[
      SHOP,
      `http://${SHOP}`,
      `https://${SHOP}/`,
      `https://${SHOP}:443`,
      `https://${SHOP}.evil.example`,
      `https://evil.example/${SHOP}`,
      `https://evil.example#.myshopify.com`,
      `https://user@${SHOP}`,
      "https://.myshopify.com",
      "https://-a.myshopify.com",
      "https://a.b.myshopify.com",
      "https://ALPHA.myshopify.com",
      "https://alpha_1.myshopify.com",
      `https://${SHOP}\n`,
      "https://аlpha.myshopify.com",
      `https://${"a".repeat(64)}.myshopify.com`,
      "https://myshopify.com",
      "https://alphaXmyshopify.com",
    ].map((dest): [string, string, string] => [
      `the shop ${JSON.stringify(dest)}`,
      signed({ dest, iss: `${dest}/admin` }),
      "not of a shop",
    ]),
    ["a customer", signed({ ...customer, sub: "gid://shopify/Customer/1" }), "not of a staff member"],
    ["an empty session", signed({ sid: "" }), "not of a staff member"],
    ["a session of 300 characters", signed({ sid: "s".repeat(300) }), "not of a staff member"],
  ])("%s", async (_title, token, refused) => {
    expect(await verify(token)).toEqual({ refused } as never);
  });

  test("everything, without secrets or without a client id", async () => {
    const token = signed();
    const now = () => NOW;
    expect(await createIdTokenVerifier({ clientId: CLIENT, secrets: () => [], now })(token)).toEqual({
      refused: "wrong signature",
    });
    expect(await createIdTokenVerifier({ clientId: null, secrets: () => [SECRET], now })(token)).toEqual({
      refused: "for another app",
    });
  });
});
