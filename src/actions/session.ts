import { CryptoHasher } from "bun";

export const LINK_LIFE_MS = 10 * 60_000;
/** A session expires after this time without a request. */
export const SESSION_LIFE_MS = 12 * 3_600_000;
/** A session expires at this age, even if it is in use. */
export const MAX_SESSION_LIFE_MS = 30 * 24 * 3_600_000;

const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** Makes a token for a sign-in link or a session: 32 random bytes as base64url. */
export function newToken(random: (bytes: number) => Uint8Array): string {
  return base64url(random(32));
}

export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** Returns a token's SHA-256 hash, the form to store. A token has 256 random bits: salt and stretching add nothing. */
export function hashToken(token: string): Uint8Array {
  return new CryptoHasher("sha256").update(token).digest();
}

/** Computes the token that every HTML form of a session contains. Another site cannot get this token. */
export function csrfToken(session: string): string {
  return base64url(new CryptoHasher("sha256").update(`csrf ${session}`).digest());
}

function base64url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}
