/** Signatures of bodies: of webhooks, and of posts to the intake. The client's package has the part that verifies. */
export { importSecret, verifyBody, verifySignature as verify } from "../../client/signature.ts";

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** The value of X-Service-Signature: `sha256=` and lower-case hex. */
export async function signBody(key: CryptoKey, body: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.sign("HMAC", key, body));
  let hex = "";
  for (const byte of digest) hex += HEX[byte];
  return `sha256=${hex}`;
}
