import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf, messageOf, SdsError } from "../../domain/error.ts";

/**
 * Makes a folder and its missing parents. Syncs each new folder's parent before anything is written into the new
 * folder. Otherwise a power cut could remove the folder with acknowledged data.
 * @throws SdsError `failed`
 */
export function makeFolder(folder: string): void {
  try {
    const missing: string[] = [];
    let existing = folder;
    for (; !existsSync(existing); existing = dirname(existing)) missing.unshift(existing);
    // An earlier start may have made this folder and crashed before it synced the parent.
    syncFolder(dirname(existing));
    for (const each of missing) {
      // `recursive` accepts a folder that another process makes at the same time.
      mkdirSync(each, { recursive: true, mode: 0o700 });
      syncFolder(dirname(each));
    }
    if (!statSync(folder).isDirectory()) throw new Error("it is not a folder");
  } catch (thrown) {
    throw unusable(folder, thrown);
  }
}

/**
 * @returns whether the folder exists; also false if a part of its path is a file
 * @throws SdsError `failed` if the path is not a folder or cannot be read
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

/** Error codes for a folder that this process may not open or sync. */
const NOT_OURS = ["EACCES", "EPERM", "EROFS", "EINVAL"];

/** Syncs a folder, so that its file names are durable. Skips a folder that this process may not open or sync. */
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
