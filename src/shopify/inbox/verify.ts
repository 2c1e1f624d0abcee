import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { SdsError } from "../../domain/error.ts";

export type Verifier = (body: Uint8Array, header: string | null) => boolean;

/** 32 bytes in base64. */
const HMAC = /^[A-Za-z0-9+/]{43}=$/;

/** One secret a line, the newest first. */
function readSecrets(file: string): string[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** The secret by which the app names itself. @throws SdsError `failed` */
export function newestSecret(path: string | null): string {
  const [secret] = path === null ? [] : readSecrets(path);
  if (secret === undefined) throw new SdsError("failed", "SDS_PLATFORM_SECRET_FILE must name the file with the app's client secret");
  return secret;
}

/**
 * Checks X-Shopify-Hmac-Sha256: base64 HMAC-SHA256 of the raw body with the app's client secret. For an hour after a rotation
 * either secret can have signed, so the file has one a line, and it is read again whenever it changes. Web Crypto's asynchronous HMAC would take several times as
 * long over bodies as short as these.
 * @param path null where no platform is connected: then nothing is genuine
 */
export function platformVerifier(path: string | null): Verifier {
  let readAt: number | undefined;
  let secrets: string[] = [];

  function currentSecrets(file: string): string[] {
    try {
      const { mtimeMs } = statSync(file);
      if (mtimeMs === readAt) return secrets;
      const found = readSecrets(file);
      if (found.length > 0) secrets = found;
      readAt = mtimeMs;
    } catch {
      // Gone while it is being written anew: the secrets that were good are so still.
    }
    return secrets;
  }

  return (body, header) => {
    if (path === null || header === null || !HMAC.test(header)) return false;
    const given = Uint8Array.fromBase64(header);
    return currentSecrets(path).some((secret) => timingSafeEqual(createHmac("sha256", secret).update(body).digest(), given));
  };
}
