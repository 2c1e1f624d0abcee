import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { SdsError } from "../../domain/error.ts";

/** Checks the body of a platform webhook against its header X-Shopify-Hmac-Sha256. */
export type Verifier = (body: Uint8Array, header: string | null) => boolean;

/** The form of the header: 32 bytes in base64. */
export const HMAC = /^[A-Za-z0-9+/]{43}=$/;

/** Reads one secret per line, the newest first. */
function readSecrets(file: string): string[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** The secret with which the app requests tokens. @throws SdsError `failed` if the file has no secret */
export function newestSecret(file: string | null): string {
  const [secret] = file === null ? [] : readSecrets(file);
  if (secret !== undefined) return secret;
  throw new SdsError("failed", "SDS_PLATFORM_SECRET_FILE must name the file with the app's client secret");
}

/**
 * Creates a verifier. The header is the base64 HMAC-SHA256 of the raw body with the app's client secret. For an hour
 * after a rotation, the platform may sign with either secret. So the file has one secret per line, and is read again
 * when it changes. The synchronous HMAC is several times as fast as Web Crypto for bodies of this size.
 * @param file null if no platform is set up: then every webhook is refused
 */
export function createVerifier(file: string | null): Verifier {
  let readAt: number | undefined;
  let secrets: string[] = [];

  function currentSecrets(path: string): string[] {
    try {
      const { mtimeMs } = statSync(path);
      if (mtimeMs === readAt) return secrets;
      const stored = readSecrets(path);
      if (stored.length > 0) secrets = stored;
      readAt = mtimeMs;
    } catch {
      // The file is missing while somebody replaces it. The old secrets stay valid.
    }
    return secrets;
  }

  return (body, header) => {
    if (file === null || header === null || !HMAC.test(header)) return false;
    const given = Uint8Array.fromBase64(header);
    const isSignedWith = (secret: string) => timingSafeEqual(createHmac("sha256", secret).update(body).digest(), given);
    return currentSecrets(file).some(isSignedWith);
  };
}
