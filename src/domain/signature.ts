const HEADER = /^sha256=([0-9a-f]{64})$/;

/** HMAC-SHA256 with the whole secret string as UTF-8 (contract.md 2.5). Importing it costs more than signing: import once. */
export function importSecret(secret: string): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", Buffer.from(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
}

/** `sha256=` and lower-case hex, as in X-Service-Signature. */
export async function signBody(key: CryptoKey, body: Uint8Array<ArrayBuffer>): Promise<string> {
  return `sha256=${new Uint8Array(await crypto.subtle.sign("HMAC", key, body)).toHex()}`;
}

/** Compares in constant time (Web Crypto's verify). */
export async function verifyBody(key: CryptoKey, body: Uint8Array<ArrayBuffer>, header: string | null): Promise<boolean> {
  const hex = header === null ? undefined : HEADER.exec(header)?.[1];
  return hex !== undefined && crypto.subtle.verify("HMAC", key, Uint8Array.fromHex(hex), body);
}
