import { Database } from "bun:sqlite";
import { messageOf, SdsError } from "../../domain/error.ts";
import { checkVersion, migrate } from "./migrate.ts";

/**
 * How long a statement waits for another process's lock, in milliseconds. Waiting blocks the event loop, so the server
 * waits a short time only; a command has nobody else to serve.
 */
export type BusyTimeoutMs = 2_000 | 30_000;

/**
 * Bytes. With 8 KiB a page of rows is spread over twice as many of these; scripts/bench/README.md has what 16 KiB cost.
 */
const PAGE_SIZE = 16_384;
const CACHE_KIB = 32 * 1024;

/**
 * Opens or makes the database and brings its schema up to date. It is as durable as docs/operating.md promises: WAL
 * with `synchronous=FULL`.
 *
 * Some statements in this folder name a parameter `+?`. To plan an equality over several tables or rows, or a LIMIT,
 * SQLite 3.54 looks at the bound value, and prepares the statement again whenever another value is bound: 12 µs of the
 * 25 that a page takes. With a plus in front it does not look. A test finds statements that need the plus.
 * @throws SdsError `failed` for a file that is no database, or another program's, or a newer program's; the file is
 *   left as it was
 */
export function openDatabase(path: string, busyTimeoutMs: BusyTimeoutMs): Database {
  let db: Database | undefined;
  try {
    db = new Database(path, { create: true, strict: true });
    // This comes first: the default is 0, and opening after a crash needs the lock for the recovery.
    db.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    checkVersion(db, path);
    db.run(`PRAGMA page_size = ${PAGE_SIZE}`);
    db.run("PRAGMA journal_mode = WAL");
    db.run("PRAGMA synchronous = FULL");
    db.run("PRAGMA foreign_keys = ON");
    // Deleted data, such as personal data after a redaction, must not stay in the file's free space.
    db.run("PRAGMA secure_delete = ON");
    db.run(`PRAGMA cache_size = -${CACHE_KIB}`);
    migrate(db);
    // No sort or statement needs a file, and so a descriptor, while the program serves.
    db.run("PRAGMA temp_store = MEMORY");
    return db;
  } catch (thrown) {
    db?.close();
    if (thrown instanceof SdsError) throw thrown;
    throw new SdsError("failed", `cannot open the database ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/**
 * Moves the write-ahead log into the database file and empties it. Does nothing while another process uses the
 * database.
 */
export function checkpoint(db: Database, busyTimeoutMs: BusyTimeoutMs): void {
  // Without this it would block the event loop as long as, for instance, a backup reads.
  db.run("PRAGMA busy_timeout = 0");
  try {
    db.run("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    db.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
  }
}
