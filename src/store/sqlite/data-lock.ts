import { Database } from "bun:sqlite";
import { join } from "node:path";
import { codeOf, SdsError } from "../../domain/error.ts";
import { reasonOf } from "../files/disk-space.ts";
import { makeOwnedFile } from "../files/file-owner.ts";

/**
 * The lock of a data folder. Every process that has the database open holds a shared lock. A restore or `sds copy`
 * takes the exclusive lock. Otherwise a process could write the old file's log beside the new file.
 *
 * The lock is a transaction on the empty database `sds.lock`. A read transaction is a shared lock. An exclusive
 * transaction is the exclusive lock. SQLite allows one write transaction beside read transactions. `serve` holds its
 * shared lock with a write transaction. So only one `serve` can use a folder. All these locks end with their process,
 * even after a kill.
 */
export interface DataLock {
  release(): void;
}

/** Takes a shared lock. @throws SdsError `failed` if a restore or a copy locks the folder for longer than the wait */
export function shareDataFolder(folder: string, waitMs: number): DataLock {
  const lock = lockWith(folder, waitMs, "BEGIN");
  if (lock !== undefined) return lock;
  throw new SdsError("failed", `a restore or a copy has ${folder} for itself now: try again when it has ended`);
}

/**
 * Takes the lock of `serve`. The lock admits processes that only share the folder, but no second `serve`.
 * @returns undefined if another `serve` still holds the lock after the wait
 */
export function shareAsServe(folder: string, waitMs: number): DataLock | undefined {
  const lock = lockWith(folder, waitMs, "BEGIN IMMEDIATE");
  // Throws if a restore or a copy holds the exclusive lock. Another `serve` holds a shared lock, so it causes no error.
  if (lock === undefined) shareDataFolder(folder, waitMs).release();
  return lock;
}

/** Takes the exclusive lock. @returns undefined if another process uses the folder for longer than the wait */
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
