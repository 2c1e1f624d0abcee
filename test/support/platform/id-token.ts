import { createHmac } from "node:crypto";

/** Claims of an ID token, as the platform sets them. Tests also set wrong values. */
export type IdTokenClaims = Record<string, unknown>;

interface Signing {
  secret: string;
  header?: Record<string, unknown>;
  /** The hash algorithm of the signature. */
  hash?: string;
}

/** Seconds. */
const LIFE_S = 60;

/** The claims of the platform. @param now epoch milliseconds */
export function idTokenClaims(shop: string, clientId: string, now: number, more: IdTokenClaims = {}): IdTokenClaims {
  const nowS = Math.floor(now / 1000);
  return {
    iss: `https://${shop}/admin`,
    dest: `https://${shop}`,
    aud: clientId,
    sub: "42",
    exp: nowS + LIFE_S,
    nbf: nowS,
    iat: nowS,
    jti: crypto.randomUUID(),
    sid: "a2b3c4d5e6f7",
    ...more,
  };
}

/** Signs claims as a JWT. */
export function signIdToken(claims: IdTokenClaims, { secret, header, hash = "sha256" }: Signing): string {
  const signed = [header ?? { alg: "HS256", typ: "JWT" }, claims].map(encoded).join(".");
  return `${signed}.${createHmac(hash, secret).update(signed).digest("base64url")}`;
}

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

export const EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";

interface ExchangingApp {
  shop: string;
  clientId: string;
  secret: string;
  now: number;
}

/** Checks the request to exchange an ID token, as the platform does. @returns the code of the error */
export function exchangeRefusal(body: Record<string, unknown>, app: ExchangingApp): string | undefined {
  const isWellFormed =
    body["subject_token_type"] === "urn:ietf:params:oauth:token-type:id_token" &&
    body["requested_token_type"] === "urn:shopify:params:oauth:token-type:offline-access-token" &&
    // The stand-in's app is public, and public apps get no permanent tokens.
    String(body["expiring"]) === "1";
  if (!isWellFormed) return "invalid_request";
  return isValid(String(body["subject_token"]), app) ? undefined : "invalid_subject_token";
}

function isValid(token: string, { shop, clientId, secret, now }: ExchangingApp): boolean {
  const [head = "", body = "", signature = "", ...rest] = token.split(".");
  const wanted = createHmac("sha256", secret).update(`${head}.${body}`).digest("base64url");
  if (rest.length > 0 || signature !== wanted) return false;
  const { dest, aud, exp, nbf } = decoded(body);
  if (decoded(head)["alg"] !== "HS256" || dest !== `https://${shop}` || aud !== clientId) return false;
  return Number(nbf) * 1000 <= now + 10_000 && Number(exp) * 1000 > now - 10_000;
}

function decoded(part: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(part, "base64url").toString()) as Record<string, unknown>;
}
