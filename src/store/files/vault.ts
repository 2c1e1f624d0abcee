import { createCipheriv, createDecipheriv } from "node:crypto";
import { SdsError } from "../../domain/error.ts";
import type { Awaitable } from "../../lib/waits.ts";
import { type MasterKey, openMasterKey } from "./master-key.ts";

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Seals secrets with AES-256-GCM under the master key. Each secret is sealed for a purpose, which is the additional
 * data of the cipher. The secret cannot be opened for another purpose.
 */
export interface Vault {
  /** Identifies the master key without revealing it. */
  fingerprint: string;
  seal(secret: string, purpose: string): Promise<Uint8Array>;
  /** Like `seal`, but synchronous, because a transaction cannot wait. Blocks the event loop. */
  sealNow(secret: string, purpose: string): Uint8Array;
  /** @throws SdsError `failed` for another key, another purpose or changed bytes */
  open(sealed: Uint8Array, purpose: string): Promise<string>;
  /** Like `open`, but synchronous. Blocks the event loop. */
  openNow(sealed: Uint8Array, purpose: string): string;
  /** Like `open`, but caches the last secret of each purpose: comparing the sealed bytes costs less than decrypting. */
  openOften(sealed: Uint8Array, purpose: string): Promise<string>;
}

/** A database's entry for the fingerprint of its master key. */
export interface StoredFingerprint {
  /** Returns undefined for a new database. */
  read(): Awaitable<string | undefined>;
  /** Stores the fingerprint, unless the database has one already. */
  add(fingerprint: string): Awaitable<unknown>;
}

/** Opens the vault with the master key that a database expects. A new database stores the key's fingerprint. */
export async function openVaultOf(
  stored: StoredFingerprint,
  path: string,
  random: (bytes: number) => Uint8Array,
): Promise<Vault> {
  const expected = await stored.read();
  const vault = await openVault(path, expected, random);
  if (expected !== undefined) return vault;
  await stored.add(vault.fingerprint);
  // Another process may have stored another key's fingerprint in the meantime.
  const added = await stored.read();
  return added === vault.fingerprint ? vault : openVault(path, added, random);
}

/**
 * Opens the vault with the master key in a file. Makes the key on first use.
 * @param expected as in `openMasterKey`
 * @throws SdsError `failed`
 */
export async function openVault(
  path: string,
  expected: string | undefined,
  random: (bytes: number) => Uint8Array,
): Promise<Vault> {
  return vaultWith(await openMasterKey(path, expected, random), path, random);
}

/** Makes the vault of a master key. @param path path of the key's file, for messages */
export async function vaultWith(
  { bytes, fingerprint }: MasterKey,
  path: string,
  random: (bytes: number) => Uint8Array,
): Promise<Vault> {
  const key = await crypto.subtle.importKey("raw", bytes, "AES-GCM", false, ["encrypt", "decrypt"]);
  const settings = (nonce: Uint8Array<ArrayBuffer>, purpose: string) => ({
    name: "AES-GCM",
    iv: nonce,
    additionalData: Buffer.from(purpose),
  });
  const opened = new Map<string, { sealed: Uint8Array; secret: string }>();

  async function open(sealed: Uint8Array, purpose: string): Promise<string> {
    const nonce = Uint8Array.from(sealed.subarray(0, NONCE_BYTES));
    try {
      const secret = await crypto.subtle.decrypt(
        settings(nonce, purpose),
        key,
        Uint8Array.from(sealed.subarray(NONCE_BYTES)),
      );
      return Buffer.from(secret).toString();
    } catch (thrown) {
      throw undecipherable(path, thrown);
    }
  }

  return {
    fingerprint,
    async seal(secret, purpose) {
      const nonce = Uint8Array.from(random(NONCE_BYTES));
      const sealed = await crypto.subtle.encrypt(settings(nonce, purpose), key, Buffer.from(secret));
      return Buffer.concat([nonce, new Uint8Array(sealed)]);
    },
    sealNow(secret, purpose) {
      const nonce = random(NONCE_BYTES);
      const cipher = createCipheriv("aes-256-gcm", bytes, nonce).setAAD(Buffer.from(purpose));
      return Buffer.concat([nonce, cipher.update(secret, "utf8"), cipher.final(), cipher.getAuthTag()]);
    },
    open,
    openNow(sealed, purpose) {
      const cipher = createDecipheriv("aes-256-gcm", bytes, sealed.subarray(0, NONCE_BYTES)).setAAD(
        Buffer.from(purpose),
      );
      try {
        cipher.setAuthTag(sealed.subarray(-TAG_BYTES));
        const text = cipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES));
        return Buffer.concat([text, cipher.final()]).toString();
      } catch (thrown) {
        throw undecipherable(path, thrown);
      }
    },
    async openOften(sealed, purpose) {
      const last = opened.get(purpose);
      if (last !== undefined && Buffer.compare(last.sealed, sealed) === 0) return last.secret;
      const secret = await open(sealed, purpose);
      opened.set(purpose, { sealed, secret });
      return secret;
    },
  };
}

function undecipherable(path: string, cause: unknown): SdsError {
  return new SdsError("failed", `a stored secret cannot be decrypted with the master key ${path}`, { cause });
}
