import { statfsSync } from "node:fs";
import { codeOf, messageOf } from "../../domain/error.ts";
import { bytesText } from "../../lib/text.ts";
import { StoreError } from "../port/store-error.ts";

/**
 * A disk with less free space is treated as full. We need this limit because SQLite does not always report a full disk:
 * if the index of its log cannot grow, it can report an I/O error.
 */
const LITTLE_BYTES = 1024 * 1024;

/**
 * Describes a full disk for messages, with its folder and its free space.
 * @param thrown an error of SQLite or the system, after a write to the folder
 * @returns undefined for other errors
 */
export function describeFullDisk(thrown: unknown, folder: string): string | undefined {
  const code = codeOf(thrown);
  const free = freeBytes(folder);
  const isFull =
    ["SQLITE_FULL", "ENOSPC", "EDQUOT"].includes(code) ||
    (code.startsWith("SQLITE_IOERR") && free !== undefined && free < LITTLE_BYTES);
  return isFull ? fullDiskText(folder, free) : undefined;
}

function fullDiskText(folder: string, free: number | undefined): string {
  return `the disk of ${folder} is full${free === undefined ? "" : ` (${bytesText(free)} free)`}`;
}

/**
 * Fails if the disk of a folder is almost full. On such a disk a small write can succeed, because the log file already
 * has space for it. So a successful write does not prove that there is enough space.
 * @throws StoreError `lost`
 */
export function checkSpace(folder: string): void {
  const free = freeBytes(folder);
  if (free !== undefined && free < LITTLE_BYTES)
    throw new StoreError("lost", new Error("the disk is almost full"), fullDiskText(folder, free));
}

/** Describes why a write to a folder failed. */
export function reasonOf(thrown: unknown, folder: string): string {
  return describeFullDisk(thrown, folder) ?? messageOf(thrown);
}

/** Returns the bytes that this user may still write; undefined if the folder does not exist. */
export function freeBytes(folder: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}
