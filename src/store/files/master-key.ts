import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { codeOf, isForbidden, messageOf, SdsError } from "../../domain/error.ts";
import { rightsProblem } from "../../lib/users.ts";
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

/** The error for a master key that the stored secrets were not encrypted with. */
export class WrongMasterKey extends SdsError {}

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
  let key = await readMasterKey(path, expected);
  if (key === undefined && expected === undefined) {
    makeKey(path, random);
    key = await readMasterKey(path, expected);
  } else if (expected === undefined) syncFolder(dirname(path));
  if (key === undefined)
    throw new SdsError(
      "failed",
      `the master key ${path} is missing, and stored secrets need it: put it back from your backup; ${LOST}`,
    );
  if (expected !== undefined && key.fingerprint !== expected) {
    throw new WrongMasterKey(
      "failed",
      `the master key ${path} is not the one that stored secrets were encrypted with: put that one back; ${LOST}`,
    );
  }
  // Removing drafts is safe: a process that still writes a draft finds this key and uses it.
  removeDrafts(path);
  return key;
}

/** What to do without the key. */
const LOST = "if it is lost for good, `sds master-key reset` makes new secrets";

/**
 * Reads the master key. While the key is being changed, the file has two lines: first the new key, then the old key.
 * @param expected the fingerprint of the key to return. If the file does not have this key, returns the first key
 * @returns undefined if the file is missing
 * @throws SdsError `failed` if it is unreadable or not a master key
 */
export async function readMasterKey(path: string, expected?: string): Promise<MasterKey | undefined> {
  const text = readMasterKeyFile(path);
  if (text === undefined) return undefined;
  // A killed process can leave an empty file on a file system without hard links. But an empty file may also have lost
  // a key that is in use. So an empty file is an error, and gets no new key.
  if (text === "")
    throw new SdsError(
      "failed",
      `the master key ${path} is empty: put it back from your backup, or delete the file if the first start of sds ` +
        "in this folder was interrupted",
    );
  const lines = text.split("\n");
  if (lines.length > 2 || !lines.every((line) => /^[0-9a-f]{64}$/.test(line)))
    throw new SdsError(
      "failed",
      `${path} is not a master key: it should hold 64 hexadecimal digits; put it back from your backup; ${LOST}`,
    );
  const keys = await Promise.all(lines.map((line) => masterKeyOf(Uint8Array.fromHex(line))));
  return keys.find(({ fingerprint }) => fingerprint === expected) ?? keys[0];
}

/** @returns undefined if the file is missing @throws SdsError `failed` for an unreadable file */
export function readMasterKeyFile(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (thrown) {
    if (codeOf(thrown) === "ENOENT") return undefined;
    const reason = isForbidden(thrown) ? rightsProblem(path) : messageOf(thrown);
    throw new SdsError("failed", `cannot read the master key ${path}: ${reason}`, { cause: thrown });
  }
}

async function masterKeyOf(bytes: Uint8Array<ArrayBuffer>): Promise<MasterKey> {
  return { bytes, fingerprint: new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).slice(0, 8).toHex() };
}

function lineOf(bytes: Uint8Array): string {
  return `${bytes.toHex()}\n`;
}

/** Makes a key that no file has yet. */
export function newMasterKey(random: (bytes: number) => Uint8Array): Promise<MasterKey> {
  return masterKeyOf(Uint8Array.from(random(KEY_BYTES)));
}

/**
 * Replaces the file of the master key atomically. If the path is a symbolic link, replaces the file that it points to.
 * @param keys one, or two while the key is being changed
 */
export function replaceMasterKeys(
  file: string,
  keys: readonly MasterKey[],
  random: (bytes: number) => Uint8Array,
): void {
  const path = existsSync(file) ? realpathSync(file) : file;
  const draft = draftPath(path, random);
  try {
    writeDraft(draft, path, () => keys.map(({ bytes }) => lineOf(bytes)).join(""));
    renameSync(draft, path);
    syncFolder(dirname(path));
  } catch (thrown) {
    throw new SdsError("failed", `cannot write the master key ${path}: ${reasonOf(thrown, dirname(path))}`, {
      cause: thrown,
    });
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Writes and syncs a draft. Its owner is the owner of the file at `path`, or of the folder if the file is missing. */
function writeDraft(draft: string, path: string, text: () => string): void {
  const file = openSync(draft, "wx", 0o600);
  try {
    giveToOwner(file, statSync(path, { throwIfNoEntry: false }) ?? statSync(dirname(path)));
    writeFileSync(file, text());
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Makes the key file atomically. If several processes make a key, the first key stays. */
function makeKey(path: string, random: (bytes: number) => Uint8Array): void {
  const draft = draftPath(path, random);
  try {
    writeDraft(draft, path, () => lineOf(random(KEY_BYTES)));
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
