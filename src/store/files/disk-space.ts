import { statfsSync } from "node:fs";
import { codeOf, messageOf } from "../../domain/error.ts";
import { bytesText } from "../../lib/text.ts";

/** Below this, an I/O error of SQLite is one of a full disk: it hides why it could not grow the index of a log. */
const LITTLE_BYTES = 1024 * 1024;

/** Describes a failed write to a folder, for messages. If the disk is full, says which one and how much is free. */
export function reasonOf(thrown: unknown, folder: string): string {
  const free = freeBytes(folder);
  const code = codeOf(thrown);
  const isFull =
    ["SQLITE_FULL", "ENOSPC", "EDQUOT"].includes(code) ||
    (code.startsWith("SQLITE_IOERR") && free !== undefined && free < LITTLE_BYTES);
  if (!isFull) return messageOf(thrown);
  return `the disk of ${folder} is full${free === undefined ? "" : `, ${bytesText(free)} are free`}`;
}

/** Returns the bytes that this user may still write; undefined if the folder does not exist. */
function freeBytes(folder: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}
