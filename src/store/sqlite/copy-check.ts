import { Database } from "bun:sqlite";
import { closeSync, fsyncSync, openSync, readSync } from "node:fs";
import { messageOf, SdsError } from "../../domain/error.ts";
import { checkVersion } from "./migrate.ts";

const HEADER_BYTES = 100;

/**
 * Checks quickly whether a file can be a copy of a database of this program.
 * @throws SdsError `invalid` if it cannot, `failed` if it cannot be read
 */
export function checkHeader(file: string): void {
  const header = Buffer.alloc(HEADER_BYTES);
  try {
    const fd = openSync(file, "r");
    try {
      readSync(fd, header, 0, HEADER_BYTES, 0);
    } finally {
      closeSync(fd);
    }
  } catch (thrown) {
    throw new SdsError("failed", `cannot read ${file}: ${messageOf(thrown)}`, { cause: thrown });
  }
  if (header.toString("latin1", 0, 16) !== "SQLite format 3\0")
    throw new SdsError("invalid", `${file} is not a database`);
}

interface CheckedCopy {
  /** Fingerprint of the master key that its secrets are sealed with; undefined if it has none. */
  sealedWith: string | undefined;
}

/**
 * Checks a whole copy that nobody else uses, and makes it one file without a log.
 * @param name the file in messages
 * @throws SdsError `invalid` for a damaged file, `failed` for a database of another program or a newer sds
 */
export function checkCopy(path: string, name: string): CheckedCopy {
  let db: Database | undefined;
  try {
    db = new Database(path, { readwrite: true, create: false, strict: true });
    db.run("PRAGMA journal_mode = DELETE");
    const version = checkVersion(db, name);
    if (version === 0) throw new SdsError("invalid", `${name} is empty: it is no backup`);
    const problem = db.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get()?.quick_check;
    if (problem !== "ok") throw new Error(problem);
    return { sealedWith: sealedWith(db, version) };
  } catch (thrown) {
    if (thrown instanceof SdsError) throw thrown;
    throw new SdsError("invalid", `${name} is damaged: ${messageOf(thrown)}`, { cause: thrown });
  } finally {
    db?.close(true);
  }
}

/** The table was called `facts` before schema 5. */
function sealedWith(db: Database, version: number): string | undefined {
  const table = version < 5 ? "facts" : "meta";
  return db.query<{ value: string }, []>(`SELECT value FROM ${table} WHERE name = 'master_key'`).get()?.value;
}

/** Writes a file's content to the disk. No connection of this process may have it open: it would lose its locks. */
export function syncFile(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
