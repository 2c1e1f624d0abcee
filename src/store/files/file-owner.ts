import { closeSync, fchownSync, openSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf } from "../../domain/error.ts";

/**
 * If root made a file, gives the file to the owner of the data. Otherwise `serve` could not open files that a command
 * by root made. SQLite does the same for the log beside a database. Only root can change owners.
 * @param beside a file or folder whose owner to copy
 */
export function giveToOwner(fd: number, beside: Pick<Stats, "uid" | "gid">): void {
  if (process.geteuid?.() === 0) fchownSync(fd, beside.uid, beside.gid);
}

/**
 * Makes an empty file that only the folder's owner can read. Does not open an existing file: closing a database file
 * would release this process's other locks on it.
 */
export function makeOwnedFile(path: string): void {
  let fd: number;
  try {
    fd = openSync(path, "wx", 0o600);
  } catch (thrown) {
    if (codeOf(thrown) === "EEXIST") return;
    throw thrown;
  }
  try {
    giveToOwner(fd, statSync(dirname(path)));
  } finally {
    closeSync(fd);
  }
}
