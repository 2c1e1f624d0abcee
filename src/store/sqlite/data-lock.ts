import { Database } from "bun:sqlite";
import { join } from "node:path";
import { codeOf, SdsError } from "../../domain/error.ts";
import { reasonOf } from "../files/disk-space.ts";
import { makeOwnedFile } from "../files/file-owner.ts";

/**
 * The lock of a data folder. Every process that has the database open shares the lock. A restore or `sds copy` takes it
 * exclusively. Otherwise a process could write the old file's log beside the new file.
 *
 * The lock is a transaction on the empty database `sds.lock`. A read transaction shares the lock, an exclusive
 * transaction takes the lock. SQLite allows one write transaction beside read transactions. `serve` shares the lock by
 * this write transaction, so a folder has only one `serve`. All these locks end with their process, even after a kill.
 */
export interface DataLock {
  release(): void;
}

/** Shares the lock. @throws SdsError `failed` if a restore or a copy locks the folder for longer than the wait */
export function shareDataFolder(folder: string, waitMs: number): DataLock {
  const lock = lockWith(folder, waitMs, "BEGIN");
  if (lock !== undefined) return lock;
  throw new SdsError("failed", `a restore or a copy has ${folder} for itself now: try again when it has ended`);
}

/** Shares the lock as the folder's `serve`. @returns undefined if another `serve` has it for longer than the wait */
export function shareAsServe(folder: string, waitMs: number): DataLock | undefined {
  const lock = lockWith(folder, waitMs, "BEGIN IMMEDIATE");
  // Throws if a restore or a copy has the lock. Does not throw because of another `serve`, which only shares it.
  if (lock === undefined) shareDataFolder(folder, waitMs).release();
  return lock;
}

/** Takes the lock exclusively. @returns undefined if another process uses the folder for longer than the wait */
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
    // This database is never written, so it needs no journal.
    db.run("PRAGMA journal_mode = MEMORY");
    db.run(begin);
    // `BEGIN` alone locks nothing: the first read takes the lock.
    db.query("SELECT count(*) FROM sqlite_schema").get();
    const held = db;
    return { release: () => held.close(true) };
  } catch (thrown) {
    db?.close(true);
    if (codeOf(thrown).startsWith("SQLITE_BUSY")) return undefined;
    throw new SdsError("failed", `cannot lock the data folder with ${path}: ${reasonOf(thrown, folder)}`, {
      cause: thrown,
    });
  }
}
