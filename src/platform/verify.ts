import { readFileSync, statSync } from "node:fs";
import { SdsError } from "../domain/error.ts";
import { importSecret } from "../domain/signature.ts";

export type Verifier = (body: Uint8Array<ArrayBuffer>, header: string | null) => Promise<boolean>;

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
 * either secret can have signed, so the file has one a line, and it is read again whenever it changes.
 * @param path null where no platform is connected: then nothing is genuine
 */
export function platformVerifier(path: string | null): Verifier {
  let readAt: number | undefined;
  let keys: CryptoKey[] = [];

  async function currentKeys(file: string): Promise<CryptoKey[]> {
    const { mtimeMs } = statSync(file);
    if (mtimeMs === readAt) return keys;
    keys = await Promise.all(readSecrets(file).map(importSecret));
    readAt = mtimeMs;
    return keys;
  }

  return async (body, header) => {
    if (path === null || header === null || !HMAC.test(header)) return false;
    const given = Uint8Array.fromBase64(header);
    const checks = (await currentKeys(path)).map((key) => crypto.subtle.verify("HMAC", key, given, body));
    return (await Promise.all(checks)).includes(true);
  };
}
