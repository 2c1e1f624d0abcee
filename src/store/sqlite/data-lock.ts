import { Database } from "bun:sqlite";
import { join } from "node:path";
import { codeOf, messageOf, SdsError } from "../../domain/error.ts";
import { makeOwnedFile } from "../files/file-owner.ts";

/**
 * Who uses a data folder. Every process that opens the database shares the lock for as long; a restore and a
 * copy to another engine have it alone. Without it, a process could still have the old file open, and its log would be
 * mixed with the new one.
 *
 * The lock is a read or write transaction on the empty database `sds.lock`: it ends with its process, however that
 * ends.
 */
export interface DataLock {
  release(): void;
}

/** @throws SdsError `failed` if a restore or a copy has the folder for longer than the wait */
export function shareDataFolder(folder: string, waitMs: number): DataLock {
  const lock = lockWith(folder, waitMs, "BEGIN");
  if (lock !== undefined) return lock;
  throw new SdsError("failed", `a restore or a copy has ${folder} for itself now: try again when it has ended`);
}

/** @returns undefined if another process uses the folder for longer than the wait */
export function takeDataFolder(folder: string, waitMs: number): DataLock | undefined {
  return lockWith(folder, waitMs, "BEGIN EXCLUSIVE");
}

function lockWith(folder: string, waitMs: number, begin: string): DataLock | undefined {
  const path = join(folder, "sds.lock");
  let db: Database | undefined;
  try {
    makeOwnedFile(path);
    db = new Database(path, { readwrite: true, create: false });
    db.run(`PRAGMA busy_timeout = ${waitMs}`);
    // The lock has no content, so it needs no journal.
    db.run("PRAGMA journal_mode = MEMORY");
    db.run(begin);
    // `BEGIN` alone locks nothing before the first read.
    db.query("SELECT count(*) FROM sqlite_schema").get();
    const held = db;
    return { release: () => held.close(true) };
  } catch (thrown) {
    db?.close(true);
    if (codeOf(thrown).startsWith("SQLITE_BUSY")) return undefined;
    throw new SdsError("failed", `cannot lock the data folder with ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
}
