import { closeSync, existsSync, fsyncSync, linkSync, openSync, readFileSync, unlinkSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf, SdsError } from "../domain/error.ts";

const KEY_BYTES = 32;
const NONCE_BYTES = 12;

/**
 * Seals secrets with AES-256-GCM under the master key. A secret's purpose is sealed with it, so it cannot be opened for
 * another purpose.
 */
export interface Vault {
  /** Identifies the master key, and reveals nothing else about it. */
  fingerprint: string;
  seal(secret: string, purpose: string): Promise<Uint8Array>;
  /** @throws SdsError `failed` if it was sealed with another key, for another purpose, or was changed */
  open(sealed: Uint8Array, purpose: string): Promise<string>;
  /**
   * The same for a secret that is needed often: the last one opened for a purpose is remembered, because decrypting
   * costs more than comparing.
   */
  openOften(sealed: Uint8Array, purpose: string): Promise<string>;
}

/**
 * Opens the vault with the master key in a file; makes the key on first use.
 * @param expected fingerprint of the key that sealed what is stored. If its file is missing, no new key is made,
 *   because with it every stored secret would be unreadable.
 * @throws SdsError `failed`
 */
export async function openVault(
  path: string,
  expected: string | undefined,
  random: (bytes: number) => Uint8Array,
): Promise<Vault> {
  const bytes = readKey(path) ?? (expected === undefined ? makeKey(path, random(KEY_BYTES)) : undefined);
  if (bytes === undefined)
    throw new SdsError(
      "failed",
      `the master key ${path} is missing, and stored secrets need it: put it back from your backup`,
    );
  const fingerprint = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).slice(0, 8).toHex();
  if (expected !== undefined && fingerprint !== expected) {
    throw new SdsError(
      "failed",
      `the master key ${path} is not the one that stored secrets were encrypted with: put that one back`,
    );
  }
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
      throw new SdsError("failed", `a stored secret cannot be decrypted with the master key ${path}`, {
        cause: thrown,
      });
    }
  }

  return {
    fingerprint,
    async seal(secret, purpose) {
      const nonce = Uint8Array.from(random(NONCE_BYTES));
      const sealed = await crypto.subtle.encrypt(settings(nonce, purpose), key, Buffer.from(secret));
      return Buffer.concat([nonce, new Uint8Array(sealed)]);
    },
    open,
    async openOften(sealed, purpose) {
      const last = opened.get(purpose);
      if (last !== undefined && Buffer.compare(last.sealed, sealed) === 0) return last.secret;
      const secret = await open(sealed, purpose);
      opened.set(purpose, { sealed, secret });
      return secret;
    },
  };
}

function readKey(path: string): Uint8Array<ArrayBuffer> | undefined {
  if (!existsSync(path)) return undefined;
  let text: string;
  try {
    text = readFileSync(path, "utf8").trim();
  } catch (thrown) {
    throw new SdsError("failed", `cannot read the master key ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
  if (/^[0-9a-f]{64}$/.test(text)) return Uint8Array.fromHex(text);
  throw new SdsError("failed", `${path} is not a master key: it should hold 64 hexadecimal digits`);
}

/**
 * Links a finished file into its place, so that the key is there as a whole or not at all. If several programs make
 * one, the first stays.
 */
function makeKey(path: string, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const draft = `${path}.${process.pid}.new`;
  try {
    const file = openSync(draft, "wx", 0o600);
    writeSync(file, `${bytes.toHex()}\n`);
    fsyncSync(file);
    closeSync(file);
    try {
      linkSync(draft, path);
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== "EEXIST") throw thrown;
    }
    unlinkSync(draft);
    const folder = openSync(dirname(path), "r");
    fsyncSync(folder);
    closeSync(folder);
  } catch (thrown) {
    throw new SdsError("failed", `cannot make the master key ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
  return readKey(path) as Uint8Array<ArrayBuffer>;
}
