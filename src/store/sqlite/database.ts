import { Database } from "bun:sqlite";
import { messageOf, SdsError } from "../../domain/error.ts";
import { checkVersion, migrate } from "./migrate.ts";

/**
 * How long a statement waits for another process's lock, in milliseconds. It blocks the event loop, so the server's is short;
 * nobody waits for a command's loop.
 */
export type BusyTimeout = 2_000 | 30_000;

/** Bytes. A page of rows is read from half as many places as with 8 KiB; see the README for what it costs. */
const PAGE_SIZE = 16_384;
const CACHE_KIB = 32 * 1024;

/**
 * Some statements name a parameter `+?`. To plan an equality among several tables or rows, or a LIMIT, SQLite (3.54) looks at what is bound,
 * and then prepares the statement anew each time something else is bound: 12 µs of a page's 25. Behind a plus it does not look.
 * A test finds statements that need one.
 *
 * Opens or makes the database, durable as contract.md 7 wants it, and brings its schema up to date.
 * @throws SdsError `failed` for a file that is no database, is another program's or a newer sds's; it is left as it was
 */
export function openDatabase(path: string, busyTimeout: BusyTimeout): Database {
  let db: Database | undefined;
  try {
    db = new Database(path, { create: true, strict: true });
    // First of all: the default is 0, and even the opening after a crash needs the lock for its recovery.
    db.run(`PRAGMA busy_timeout = ${busyTimeout}`);
    checkVersion(db, path);
    db.run(`PRAGMA page_size = ${PAGE_SIZE}`);
    db.run("PRAGMA journal_mode = WAL");
    db.run("PRAGMA synchronous = FULL");
    db.run("PRAGMA foreign_keys = ON");
    // What was deleted, personal data after a redaction for one, is not left behind in the file's free space.
    db.run("PRAGMA secure_delete = ON");
    db.run(`PRAGMA cache_size = -${CACHE_KIB}`);
    migrate(db);
    return db;
  } catch (thrown) {
    db?.close();
    if (thrown instanceof SdsError) throw thrown;
    throw new SdsError("failed", `cannot open the database ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** Moves the log into the database and empties it, unless somebody else is at work: then the next time will do. */
export function checkpoint(db: Database, busyTimeout: BusyTimeout): void {
  // Waiting would stop the event loop for as long as, say, a backup reads.
  db.run("PRAGMA busy_timeout = 0");
  try {
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    db.run(`PRAGMA busy_timeout = ${busyTimeout}`);
  }
}
