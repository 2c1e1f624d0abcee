import { closeSync, existsSync, fsyncSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf, messageOf, SdsError } from "../../domain/error.ts";
import { syncFolder } from "./data-folder.ts";
import { reasonOf } from "./disk-space.ts";
import { draftPath, publishDraft, removeDrafts } from "./drafts.ts";
import { giveToOwner } from "./file-owner.ts";

const KEY_BYTES = 32;

export interface MasterKey {
  bytes: Uint8Array<ArrayBuffer>;
  /** Identifies the key without revealing it. */
  fingerprint: string;
}

/**
 * Reads the master key, or makes it on first use.
 * @param expected fingerprint of the key that sealed the stored secrets; undefined if nothing is sealed yet. With a
 *   fingerprint no new key is made, because a new key could not open the secrets.
 * @throws SdsError `failed`
 */
export async function openMasterKey(
  path: string,
  expected: string | undefined,
  random: (bytes: number) => Uint8Array,
): Promise<MasterKey> {
  let key = await readMasterKey(path);
  if (key === undefined && expected === undefined) {
    makeKey(path, random);
    key = await readMasterKey(path);
  } else if (expected === undefined) syncFolder(dirname(path));
  if (key === undefined)
    throw new SdsError(
      "failed",
      `the master key ${path} is missing, and stored secrets need it: put it back from your backup`,
    );
  if (expected !== undefined && key.fingerprint !== expected) {
    throw new SdsError(
      "failed",
      `the master key ${path} is not the one that stored secrets were encrypted with: put that one back`,
    );
  }
  // Removing drafts is safe: a process that still writes a draft finds this key and uses it.
  removeDrafts(path);
  return key;
}

/**
 * Reads the master key. @returns undefined if the file is missing. @throws SdsError `failed` if it is unreadable or not
 * a master key
 */
export async function readMasterKey(path: string): Promise<MasterKey | undefined> {
  let text: string;
  try {
    text = readFileSync(path, "utf8").trim();
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return undefined;
    throw new SdsError("failed", `cannot read the master key ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
  // Without hard links, a killed process can leave an empty file. This makes no new key in its place, because a used
  // key may have been lost.
  if (text === "")
    throw new SdsError(
      "failed",
      `the master key ${path} is empty: put it back from your backup, or delete the file if the first start of sds ` +
        "in this folder was interrupted",
    );
  if (!/^[0-9a-f]{64}$/.test(text))
    throw new SdsError("failed", `${path} is not a master key: it should hold 64 hexadecimal digits`);
  const bytes = Uint8Array.fromHex(text);
  return { bytes, fingerprint: new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).slice(0, 8).toHex() };
}

/** Makes the key file, whole or not at all. If several processes make a key, the first key stays. */
function makeKey(path: string, random: (bytes: number) => Uint8Array): void {
  const draft = draftPath(path, random);
  try {
    const file = openSync(draft, "wx", 0o600);
    try {
      giveToOwner(file, statSync(dirname(path)));
      writeFileSync(file, `${random(KEY_BYTES).toHex()}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    try {
      publishDraft(draft, path);
    } catch (thrown) {
      // If the key exists, another process made it first, and may have removed our draft.
      if (!existsSync(path)) throw thrown;
    }
    syncFolder(dirname(path));
  } catch (thrown) {
    throw new SdsError("failed", `cannot make the master key ${path}: ${reasonOf(thrown, dirname(path))}`, {
      cause: thrown,
    });
  } finally {
    rmSync(draft, { force: true });
  }
}
