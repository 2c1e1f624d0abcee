/**
 * Signatures of webhook bodies. This module needs only Web Crypto, so receivers in TypeScript can use it as it is
 * (package.json exports it as `sds/signature`).
 */

const HEADER = /^sha256=([0-9a-f]{64})$/;
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/**
 * Imports the key of the HMAC-SHA256: the whole secret string as UTF-8. Importing costs more than signing, so import
 * once.
 */
export function importSecret(secret: string): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", new TextEncoder().encode(secret), { name: "HMAC", hash: "SHA-256" }, false, [
    "sign",
    "verify",
  ]);
}

/** The value of X-Service-Signature: `sha256=` and lower-case hex. */
export async function signBody(key: CryptoKey, body: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.sign("HMAC", key, body));
  let hex = "";
  for (const byte of digest) hex += HEX[byte];
  return `sha256=${hex}`;
}

/** Whether the header is the body's signature. Compares in constant time. */
export async function verifyBody(
  key: CryptoKey,
  body: Uint8Array<ArrayBuffer>,
  header: string | null,
): Promise<boolean> {
  const hex = header === null ? undefined : HEADER.exec(header)?.[1];
  if (hex === undefined) return false;
  const given = Uint8Array.from({ length: 32 }, (_, index) => Number.parseInt(hex.slice(index * 2, index * 2 + 2), 16));
  return crypto.subtle.verify("HMAC", key, given, body);
}

/**
 * For receivers: whether a delivery is genuine. Pass the raw body, before anything parses it, and answer 401 if it is
 * not genuine.
 * @param secret what `sds webhook secret` prints
 * @param header X-Service-Signature
 */
export async function verify(
  secret: string,
  body: Uint8Array<ArrayBuffer> | string,
  header: string | null,
): Promise<boolean> {
  return verifyBody(
    await importSecret(secret),
    typeof body === "string" ? new TextEncoder().encode(body) : body,
    header,
  );
}
