const HEADER = /^sha256=([0-9a-f]{64})$/;
const STANDARD_SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/;
const STANDARD_SIGNATURE = /^v1,([A-Za-z0-9+/]{43}=)$/;
/** Maximum number of signatures in a header. A header with more is refused, because each signature costs a check. */
const MAX_SIGNATURES = 8;
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Imports a secret as a key for X-Service-Signature. Import it once, because an import costs more than signing. */
export function importSecret(secret: string): Promise<CryptoKey> {
  return importBytes(new TextEncoder().encode(secret));
}

/**
 * Imports the key of Standard Webhooks: the base64 after `whsec_`.
 * @returns undefined if the secret has another form
 */
async function importStandardSecret(secret: string): Promise<CryptoKey | undefined> {
  const [, base64] = STANDARD_SECRET.exec(secret) ?? [];
  const bytes = base64 === undefined ? undefined : fromBase64(base64);
  return bytes === undefined ? undefined : importBytes(bytes);
}

function importBytes(bytes: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
}

/** Returns the X-Service-Signature of a body. The server signs its webhooks, and senders sign the records they post. */
export async function signBody(key: CryptoKey, body: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.sign("HMAC", key, body));
  let hex = "";
  for (const byte of digest) hex += HEX[byte];
  return `sha256=${hex}`;
}

/**
 * Whether X-Service-Signature is right for the body. Compares in constant time. `verify` also reads the event, and
 * checks Standard Webhooks.
 * @param body the raw body, before anything parses it
 */
export async function verifySignature(
  secret: string,
  body: Uint8Array<ArrayBuffer> | string,
  header: string | null,
): Promise<boolean> {
  const hex = header === null ? undefined : HEADER.exec(header)?.[1];
  if (hex === undefined) return false;
  const given = Uint8Array.from({ length: 32 }, (_, index) => Number.parseInt(hex.slice(index * 2, index * 2 + 2), 16));
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  return crypto.subtle.verify("HMAC", await importSecret(secret), given, bytes);
}

/** The headers of Standard Webhooks: webhook-id, webhook-timestamp and webhook-signature. */
export interface StandardHeaders {
  id: string;
  timestamp: string;
  /** Signatures, separated by spaces. */
  signatures: string;
}

/** Whether one of the signatures fits one of the secrets. Compares in constant time. Accepts a timestamp of any age. */
export async function verifyStandard(
  secrets: readonly string[],
  body: Uint8Array<ArrayBuffer>,
  { id, timestamp, signatures }: StandardHeaders,
): Promise<boolean> {
  const signed = concatenate(new TextEncoder().encode(`${id}.${timestamp}.`), body);
  const given = signatures.split(" ").flatMap((signature) => {
    const [, base64] = STANDARD_SIGNATURE.exec(signature) ?? [];
    return (base64 === undefined ? undefined : fromBase64(base64)) ?? [];
  });
  if (given.length > MAX_SIGNATURES) return false;
  for (const secret of secrets) {
    const key = await importStandardSecret(secret);
    if (key === undefined) continue;
    for (const signature of given) if (await crypto.subtle.verify("HMAC", key, signature, signed)) return true;
  }
  return false;
}

function concatenate(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}

/** @returns undefined if the text is not base64 */
function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
