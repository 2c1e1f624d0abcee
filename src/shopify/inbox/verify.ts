import { createHmac, timingSafeEqual } from "node:crypto";
import type { AppSecrets } from "../api/app-secrets.ts";

/** Checks the body of a platform webhook against its header X-Shopify-Hmac-Sha256. */
export type Verifier = (body: Uint8Array, header: string | null) => boolean;

/** The form of the header: 32 bytes in base64. */
export const HMAC = /^[A-Za-z0-9+/]{43}=$/;

/**
 * Creates a verifier. The header is the base64 HMAC-SHA256 of the raw body with the app's client secret. For usual
 * bodies, the synchronous HMAC is several times as fast as Web Crypto. Without secrets, every webhook is refused.
 */
export function createVerifier(secrets: AppSecrets): Verifier {
  return (body, header) => {
    if (header === null || !HMAC.test(header)) return false;
    const given = Uint8Array.fromBase64(header);
    const isSignedWith = (secret: string) => timingSafeEqual(createHmac("sha256", secret).update(body).digest(), given);
    return secrets().some(isSignedWith);
  };
}
