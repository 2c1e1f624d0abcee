import { CryptoHasher } from "bun";

/** How long a link to the settings page is good for. Milliseconds. */
export const LINK_LIFE = 10 * 60_000;
/** How long somebody stays signed in. */
export const SESSION_LIFE = 12 * 3_600_000;

const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** Of a link or a session: 32 random bytes as base64url. */
export function newToken(random: (bytes: number) => Uint8Array): string {
  return base64url(random(32));
}

export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** SHA-256, the only form in which a token is stored: it has 256 random bits, so neither salt nor stretching adds anything. */
export function hashToken(token: string): Uint8Array {
  return new CryptoHasher("sha256").update(token).digest();
}

/** What every form of a session carries: another site can neither read it nor compute it. */
export function csrfToken(session: string): string {
  return base64url(new CryptoHasher("sha256").update(`csrf ${session}`).digest());
}

function base64url(bytes: Uint8Array): string {
  return bytes.toBase64({ alphabet: "base64url", omitPadding: true });
}
