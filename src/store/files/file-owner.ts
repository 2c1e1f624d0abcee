import { closeSync, fchownSync, openSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf } from "../../domain/error.ts";

/**
 * Gives a file that root made to whom the data belongs. Otherwise one command by root would lock out the user that
 * `serve` runs as. SQLite does the same for a log beside a database. Other users cannot give files away.
 * @param beside a file or folder of the one who shall have it
 */
export function giveToOwner(fd: number, beside: Pick<Stats, "uid" | "gid">): void {
  if (process.geteuid?.() === 0) fchownSync(fd, beside.uid, beside.gid);
}

/**
 * Makes an empty file for the owner of its folder alone. An existing one is not opened: closing a database would end
 * the other locks that this process has on it.
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
