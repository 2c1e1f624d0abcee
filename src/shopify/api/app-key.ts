import { createHash, createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { invalid } from "../../domain/error.ts";
import { type JsonObject, parseObject } from "../../lib/json.ts";

/** Minimum size of a safe key: 2048 bits. The platform's page shows keys of 3072 bits. */
const MIN_MODULUS_BYTES = 256;
/** Lifetime of an assertion in seconds. It can be short, because an assertion is used right after it is signed. */
const ASSERTION_LIFE_S = 60;

const ALGORITHMS = {
  RS256: { name: "RSASSA-PKCS1-v1_5" },
  PS256: { name: "RSA-PSS", saltLength: 32 },
} as const;
type Algorithm = keyof typeof ALGORITHMS;

export interface AssertionForm {
  alg: Algorithm;
  audience: string;
}

interface AssertionClaims {
  clientId: string;
  audience: string;
  /** Epoch milliseconds. */
  now: number;
}

/**
 * Reads the app's own private key, a PEM or a JWK. A key without an id (`kid`) gets its thumbprint as the id.
 * @returns the private key as a JWK, in JSON @throws SdsError `invalid`
 */
export function readAppKey(text: string): string {
  const stored = parseObject(text);
  const { n, e, d, p, q, dp, dq, qi } = privateJwk(text, stored);
  if (n === undefined || e === undefined || d === undefined)
    throw invalid("the app's key is not an RSA key: make one with `openssl genpkey -algorithm RSA`");
  if (Buffer.from(n, "base64url").length < MIN_MODULUS_BYTES)
    throw invalid("the app's key is too short: it must have 2048 bits or more, preferably 3072");
  const alg = stored?.["alg"];
  if (alg !== undefined && !isAlgorithm(alg))
    throw invalid("the app's key is for another algorithm than RS256 or PS256");
  const kid = stored?.["kid"] ?? thumbprint(e, n);
  if (typeof kid !== "string") throw invalid("the id of the app's key is not a text: correct or remove its `kid`");
  return JSON.stringify({ kty: "RSA", kid, ...(alg !== undefined && { alg }), n, e, d, p, q, dp, dq, qi });
}

/** The public half of the key from `readAppKey`, for the platform's developer dashboard. */
export function publicAppKey(appKey: string): JsonObject {
  const { kty, kid, alg = "RS256", n, e } = parseObject(appKey) ?? {};
  return { kty, kid, use: "sig", alg, n, e };
}

function privateJwk(text: string, stored: JsonObject | undefined): JsonWebKey {
  try {
    const key =
      stored === undefined ? createPrivateKey(text) : createPrivateKey({ key: stored as JsonWebKey, format: "jwk" });
    // The two halves of a JWK may belong to different keys.
    const sample = Buffer.from("a text to sign");
    if (key.asymmetricKeyType === "rsa" && !verify("sha256", sample, createPublicKey(key), sign("sha256", sample, key)))
      throw new Error("its signature does not fit");
    return key.export({ format: "jwk" });
  } catch (thrown) {
    throw invalid(
      "the app's key cannot be read: it must be a private key without a password, as a PEM or a JWK",
      thrown,
    );
  }
}

/** Returns the id of a public key, computed as in RFC 7638. */
function thumbprint(e: string, n: string): string {
  return createHash("sha256")
    .update(JSON.stringify({ e, kty: "RSA", n }))
    .digest("base64url");
}

function isAlgorithm(alg: unknown): alg is Algorithm {
  return typeof alg === "string" && Object.hasOwn(ALGORITHMS, alg);
}

/**
 * Returns the combinations of algorithm and audience to try for an assertion, the most likely first. We do not know
 * which one the platform accepts [?], so the caller tries one after another. The platform's page says that the
 * assertion is "for a store", and shows an RSA key. If the key names an algorithm, only this algorithm is returned.
 * @param tokenUrl the address that the assertion is posted to
 */
export function assertionForms(appKey: string, tokenUrl: string): AssertionForm[] {
  const alg = parseObject(appKey)?.["alg"];
  const algorithms: Algorithm[] = isAlgorithm(alg) ? [alg] : ["RS256", "PS256"];
  const audiences = [tokenUrl, tokenUrl.replace(/\/admin\/oauth\/access_token$/, "")];
  return algorithms.flatMap((each) => audiences.map((audience) => ({ alg: each, audience })));
}

/** Signs a client assertion (RFC 7523, 3): a JWT that proves that we have the app's key. */
export async function signAssertion(
  appKey: string,
  alg: Algorithm,
  { clientId, audience, now }: AssertionClaims,
): Promise<string> {
  const { kid, alg: _alg, ...jwk } = parseObject(appKey) ?? {};
  const nowS = Math.floor(now / 1000);
  const claims = {
    iss: clientId,
    sub: clientId,
    aud: audience,
    jti: crypto.randomUUID(),
    iat: nowS,
    exp: nowS + ASSERTION_LIFE_S,
  };
  const signed = [{ alg, kid, typ: "JWT" }, claims]
    .map((part) => base64url(Buffer.from(JSON.stringify(part))))
    .join(".");
  const algorithm = { ...ALGORITHMS[alg], hash: "SHA-256" };
  const key = await crypto.subtle.importKey("jwk", jwk as JsonWebKey, algorithm, false, ["sign"]);
  const signature = await crypto.subtle.sign(algorithm, key, Buffer.from(signed));
  return `${signed}.${base64url(new Uint8Array(signature))}`;
}

function base64url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}
