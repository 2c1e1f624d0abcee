import { SHA256 } from "bun";
import { invalid } from "./error.ts";
import { randomId } from "./ids.ts";

/** What is stored about an API key, except its hash. Times in epoch milliseconds. */
export interface ApiKey {
  id: string;
  label: string;
  fingerprint: string;
  createdAt: number;
  lastUsedAt: number | null;
  legacy: boolean;
  /** Who created the key, such as "staff 42" or "command line"; null for keys of earlier versions. */
  createdBy: string | null;
}

const KEY = /^cad_pk_[0-9a-f]{48}$/;
const BEARER = /^[Bb][Ee][Aa][Rr][Ee][Rr] (cad_pk_[0-9a-f]{48})$/;
const FINGERPRINT_LENGTH = "cad_pk_".length + 8;

/** Makes a key: `cad_pk_` and 48 hexadecimal digits from 24 random bytes (docs/api.md, "Authentication"). */
export function generateKey(random: (bytes: number) => Uint8Array): string {
  return `cad_pk_${random(24).toHex()}`;
}

export function isKey(text: string): boolean {
  return KEY.test(text);
}

/** Checks a key that an older system made. @throws SdsError `invalid` */
export function parseKey(text: string): string {
  if (isKey(text)) return text;
  throw invalid("the key must be cad_pk_ and 48 lower-case hexadecimal digits");
}

/** Returns the key in an Authorization header (docs/api.md, "Authentication"); undefined for any other form. */
export function keyFromHeader(header: string | null): string | undefined {
  return header === null ? undefined : BEARER.exec(header)?.[1];
}

/** Hashes a key with SHA-256. A key has 192 random bits, so it needs no salt and no stretching. */
export function hashKey(key: string): Uint8Array {
  return SHA256.hash(key) as Uint8Array;
}

/** Returns the first characters of a key. They tell keys apart, and are useless to an attacker. */
export function fingerprintOf(key: string): string {
  return key.slice(0, FINGERPRINT_LENGTH);
}

export const MAX_LABEL = 200;

/** @throws SdsError `invalid` */
export function parseLabel(text: string): string {
  const label = text.trim();
  if (label !== "" && label.length <= MAX_LABEL && label.isWellFormed() && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(label))
    return label;
  throw invalid(`the label must have 1 to ${MAX_LABEL} characters and no control or invisible characters`);
}

/** Makes the stored entry of a new key. @throws SdsError `invalid` for the label */
export function describeKey(
  key: string,
  { label, legacy, createdBy }: Pick<ApiKey, "label" | "legacy" | "createdBy">,
  random: (bytes: number) => Uint8Array,
  now: number,
): ApiKey {
  return {
    id: randomId("key_", random),
    label: parseLabel(label),
    fingerprint: fingerprintOf(key),
    createdAt: now,
    lastUsedAt: null,
    legacy,
    createdBy,
  };
}
