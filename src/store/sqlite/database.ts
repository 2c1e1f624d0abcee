import { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf, messageOf, SdsError } from "../../domain/error.ts";
import { makeOwnedFile } from "../files/file-owner.ts";
import type { UpgradeOptions } from "./left-over-bodies.ts";
import { checkVersion, migrate } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";

/**
 * How long an operation waits for another process's lock, in milliseconds. In the server somebody waits for the
 * operation; a command has time. Only while the store is opened, waiting blocks the event loop.
 */
export type BusyTimeoutMs = 2_000 | 25_000 | 30_000;

/**
 * Bytes. With 8 KiB a page of rows is spread over twice as many of these; scripts/bench/README.md has what 16 KiB cost.
 */
const PAGE_SIZE = 16_384;
const CACHE_KIB = 32 * 1024;
/**
 * With so many pages in the write-ahead log, 4 MiB, a commit moves them into the database. SQLite's own 1,000 are 16
 * MiB here: on a small disk the log took all the space, and nothing was left to empty it.
 */
const LOG_PAGES = 256;

export interface OpenOptions extends UpgradeOptions {
  /** Whether a missing or empty database is refused. Without it, a new one is made. */
  mustExist?: boolean;
  /** Whether an older database is upgraded only if no other process has it open: an older `serve` could not go on. */
  upgradeAlone?: boolean;
}

/**
 * Opens or makes the database and brings its schema up to date. It is as durable as docs/operating.md promises: WAL
 * with `synchronous=FULL`.
 *
 * Some statements in this folder name a parameter `+?`. For a LIMIT, or an equality over several tables or rows, SQLite
 * 3.54 plans with the bound value. So it prepares the statement again for every other value, which takes 12 µs of a
 * page's 25 µs. A plus in front of the parameter prevents this. A test finds statements that need the plus.
 * @throws SdsError `not_found` if it must exist and does not; `failed` for a file that is not a database, or that
 *   another or a newer program wrote. The file stays unchanged
 */
export function openDatabase(
  path: string,
  busyTimeoutMs: BusyTimeoutMs,
  { mustExist = false, upgradeAlone = false, ...upgrade }: OpenOptions,
): Database {
  let db: Database | undefined;
  try {
    checkSize(path);
    if (!mustExist) makeOwnedFile(path);
    db = connect(path, busyTimeoutMs);
    const version = checkVersion(db, path);
    if (version === 0 && mustExist) throw noData(dirname(path));
    if (upgradeAlone && version > 0 && version < MIGRATIONS.length) {
      db.close(true);
      migrateAlone(path, upgrade);
      db = connect(path, busyTimeoutMs);
    }
    migrate(configured(db), upgrade);
    // Keeps temporary data in memory: a temporary file would need a descriptor while the program serves.
    db.run("PRAGMA temp_store = MEMORY");
    return db;
  } catch (thrown) {
    db?.close(true);
    if (thrown instanceof SdsError) throw thrown;
    throw new SdsError("failed", `cannot open the database ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** What commands say that do not make a data folder. */
export function noData(folder: string): SdsError {
  return new SdsError(
    "not_found",
    `there is no data in ${folder}: name another folder with --data, or add a shop with ` +
      "`sds shop add alpha.myshopify.com`",
  );
}

/** The smallest page that SQLite can have. */
const MIN_BYTES = 512;

/** SQLite takes a file that is shorter than a page for an empty database, and would overwrite it. */
function checkSize(path: string): void {
  const { size = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {};
  if (size > 0 && size < MIN_BYTES) throw new Error("file is not a database");
}

function connect(path: string, busyTimeoutMs: BusyTimeoutMs | 0): Database {
  const db = new Database(path, { create: false, readwrite: true, strict: true });
  // This must be the first statement: recovery after a crash needs the lock, and by default SQLite does not wait.
  db.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
  return db;
}

function configured(db: Database): Database {
  db.run(`PRAGMA page_size = ${PAGE_SIZE}`);
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = FULL");
  db.run("PRAGMA foreign_keys = ON");
  // Deleted data, such as personal data after a redaction, must not stay in the file's free space.
  db.run("PRAGMA secure_delete = ON");
  db.run(`PRAGMA cache_size = -${CACHE_KIB}`);
  db.run(`PRAGMA wal_autocheckpoint = ${LOG_PAGES}`);
  return db;
}

/** How long an upgrade waits for other processes that have the database open, and how long until it looks again. */
const UPGRADE_WAIT_MS = 2_000;
const UPGRADE_LOOK_MS = 10;

/**
 * Upgrades an older database if no other process has it open, programs of an older version included. Several programs
 * may try at once: one upgrades it, and the others find it upgraded.
 * @throws SdsError `failed` if another process has it open for longer than the wait
 */
function migrateAlone(path: string, options: UpgradeOptions): void {
  const deadline = performance.now() + UPGRADE_WAIT_MS;
  for (;;) {
    try {
      if (!isUpgraded(path)) tryMigration(path, options);
      return;
    } catch (thrown) {
      if (!codeOf(thrown).startsWith("SQLITE_BUSY")) throw thrown;
      if (performance.now() > deadline) throw inUse(path, thrown);
    }
    Bun.sleepSync(UPGRADE_LOOK_MS);
  }
}

function isUpgraded(path: string): boolean {
  const db = connect(path, 0);
  try {
    return checkVersion(db, path) === MIGRATIONS.length;
  } finally {
    db.close(true);
  }
}

/**
 * Does not wait for locks, because a waiting connection keeps the lock that it has: two programs that upgrade at once
 * would deadlock.
 */
function tryMigration(path: string, options: UpgradeOptions): void {
  const db = connect(path, 0);
  try {
    // With this the first read takes the lock that every open connection to a database in WAL mode shares.
    db.run("PRAGMA locking_mode = EXCLUSIVE");
    checkVersion(db, path);
    migrate(configured(db), options);
  } finally {
    db.close(true);
  }
}

function inUse(path: string, cause: unknown): SdsError {
  return new SdsError(
    "failed",
    `${path} is from an older sds, and another process uses it, maybe an older \`sds serve\`: ` +
      "stop that first, because it cannot go on when the database is upgraded; nothing was changed",
    { cause },
  );
}

/**
 * Moves the write-ahead log into the database file and empties it. Does nothing while another process uses the
 * database, such as a backup that reads: the connection must have a busy_timeout of 0.
 * @returns whether the log is empty now
 */
export function checkpoint(db: Database): boolean {
  return db.query<{ busy: number }, []>("PRAGMA wal_checkpoint(TRUNCATE)").get()?.busy === 0;
}

/** The fingerprint of the master key that sealed the secrets; undefined before the first key is recorded. */
export function sealedWith(db: Database): string | undefined {
  return db.query<{ value: string }, []>("SELECT value FROM meta WHERE name = 'master_key'").get()?.value;
}
