import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf, messageOf, SdsError } from "../../domain/error.ts";

/**
 * Makes a folder and the missing ones above it. Each is synced in its parent before anything is written into it, so a
 * power cut cannot take a folder away from what was acknowledged in it.
 * @throws SdsError `failed`
 */
export function makeFolder(folder: string): void {
  try {
    const missing: string[] = [];
    let existing = folder;
    for (; !existsSync(existing); existing = dirname(existing)) missing.unshift(existing);
    // A start that was ended between making this folder and syncing it left that to us.
    syncFolder(dirname(existing));
    for (const each of missing) {
      // Another process may make the same folders now. With `recursive` a folder that exists is no error.
      mkdirSync(each, { recursive: true, mode: 0o700 });
      syncFolder(dirname(each));
    }
    if (!statSync(folder).isDirectory()) throw new Error("it is not a folder");
  } catch (thrown) {
    throw unusable(folder, thrown);
  }
}

/**
 * @returns whether the folder exists; false also if a part of its path is a file
 * @throws SdsError `failed` if it is no folder or cannot be looked into
 */
export function hasFolder(folder: string): boolean {
  try {
    if (!statSync(folder).isDirectory()) throw new Error("it is not a folder");
    return true;
  } catch (thrown) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(thrown))) return false;
    throw unusable(folder, thrown);
  }
}

function unusable(folder: string, cause: unknown): SdsError {
  return new SdsError("failed", `cannot use the data folder ${folder}: ${messageOf(cause)}`, { cause });
}

/** What a folder that belongs to somebody else, or cannot be written, answers. */
const NOT_OURS = ["EACCES", "EPERM", "EROFS", "EINVAL"];

/**
 * Writes a folder's names to the disk: files that were made, linked, renamed or removed in it. A folder that this user
 * may not read is left to its owner.
 */
export function syncFolder(folder: string): void {
  let fd: number | undefined;
  try {
    fd = openSync(folder, "r");
    fsyncSync(fd);
  } catch (thrown) {
    if (!NOT_OURS.includes(codeOf(thrown))) throw thrown;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
