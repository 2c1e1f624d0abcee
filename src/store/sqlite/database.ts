import { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { dirname } from "node:path";
import { codeOf, SdsError } from "../../domain/error.ts";
import { reasonOf } from "../files/disk-space.ts";
import { makeOwnedFile } from "../files/file-owner.ts";
import type { SchemaUpgrade } from "../port/store.ts";
import { noData } from "./data-files.ts";
import type { UpgradeOptions } from "./left-over-bodies.ts";
import { checkVersion, migrate } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";
import { keepUpgradeCopy, removeUpgradeCopies } from "./upgrade-copy.ts";

/**
 * How long an operation waits for another process's lock, in milliseconds. The server waits briefly, because its
 * clients wait too. A command may wait longer. The wait blocks the event loop only while the store is opened.
 */
export type BusyTimeoutMs = 2_000 | 25_000 | 30_000;

/**
 * Bytes of a database page. With 8 KiB, a page of rows is spread over twice as many database pages.
 * scripts/bench/README.md says what 16 KiB cost.
 */
const PAGE_SIZE = 16_384;
const CACHE_KIB = 32 * 1024;
/**
 * When the write-ahead log has this many pages (4 MiB), a commit moves the pages into the database. SQLite's default of
 * 1,000 pages would be 16 MiB here. Such a log filled a small disk, and no space was left to empty the log.
 */
const LOG_PAGES = 256;

export interface OpenOptions extends UpgradeOptions {
  /** Whether to refuse a missing or empty database. Otherwise a new database is made. */
  mustExist?: boolean;
  /**
   * Whether to upgrade only while no other process has the database open. An older `serve` cannot use a newer schema.
   */
  upgradeAlone?: boolean;
  /** Whether an upgrade with `upgradeAlone` keeps a copy of the older database. Default: true. */
  upgradeCopy?: boolean;
  /** Called after an upgrade with `upgradeAlone`. */
  onUpgrade?: (upgrade: SchemaUpgrade) => void;
}

/**
 * Opens or makes the database, and upgrades its schema. The database is as durable as docs/operating.md promises: WAL
 * with `synchronous=FULL`.
 *
 * Some statements in this folder write a parameter as `+?`. Without the plus, SQLite 3.54 may choose the query plan by
 * the value of the parameter. It does so for a LIMIT. It also does so for an equality if the statement joins tables, or
 * sorts or groups rows. Then it prepares the statement again for each new value, which takes 12 µs of a page's 25 µs. A
 * test finds missing pluses.
 * @throws SdsError `not_found` if the database must exist and does not; `failed` if the file is not a database, or was
 *   written by another program or a newer `sds`. The file stays unchanged.
 */
export function openDatabase(
  path: string,
  busyTimeoutMs: BusyTimeoutMs,
  { mustExist = false, upgradeAlone = false, upgradeCopy = true, ...upgrade }: OpenOptions,
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
      migrateAlone(path, { ...upgrade, upgradeCopy });
      db = connect(path, busyTimeoutMs);
    }
    migrate(configured(db), upgrade);
    // Temporary data stays in memory. A temporary file would need a descriptor while the program serves.
    db.run("PRAGMA temp_store = MEMORY");
    return db;
  } catch (thrown) {
    db?.close(true);
    if (thrown instanceof SdsError) throw thrown;
    throw new SdsError("failed", `cannot open the database ${path}: ${reasonOf(thrown, dirname(path))}`, {
      cause: thrown,
    });
  }
}

/** Size of SQLite's smallest page. */
const MIN_BYTES = 512;

/** Refuses a file that is shorter than a page. SQLite would treat it as an empty database, and overwrite it. */
function checkSize(path: string): void {
  const { size = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {};
  if (size > 0 && size < MIN_BYTES) throw new Error("file is not a database");
}

function connect(path: string, busyTimeoutMs: BusyTimeoutMs | 0): Database {
  const db = new Database(path, { create: false, readwrite: true, strict: true });
  // This must be the first statement. Recovery after a crash needs a lock, and by default SQLite does not wait for
  // locks.
  db.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
  return db;
}

function configured(db: Database): Database {
  db.run(`PRAGMA page_size = ${PAGE_SIZE}`);
  db.run("PRAGMA journal_mode = WAL");
  db.run("PRAGMA synchronous = FULL");
  db.run("PRAGMA foreign_keys = ON");
  // Deleted data must not stay in the file's free space, for example personal data after a redaction.
  db.run("PRAGMA secure_delete = ON");
  db.run(`PRAGMA cache_size = -${CACHE_KIB}`);
  db.run(`PRAGMA wal_autocheckpoint = ${LOG_PAGES}`);
  return db;
}

/** How long an upgrade waits for other processes that have the database open. */
const UPGRADE_WAIT_MS = 2_000;
/** Time between two attempts of an upgrade. */
const UPGRADE_LOOK_MS = 10;

/**
 * Upgrades an older database if no other process, not even an older program, has it open. Several programs may try at
 * once. One upgrades the database, and the others find it upgraded.
 * @throws SdsError `failed` if another process has the database open for longer than the wait
 */
function migrateAlone(path: string, options: OpenOptions): void {
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
 * Tries the upgrade once, without waiting for locks. A waiting connection keeps the lock that it has, so two programs
 * that upgrade at once would deadlock.
 */
function tryMigration(path: string, { upgradeCopy = true, ...options }: OpenOptions): void {
  const db = connect(path, 0);
  try {
    // In this mode the first read takes an exclusive lock. This read fails if another process has the database open,
    // because each open WAL connection has a shared lock.
    db.run("PRAGMA locking_mode = EXCLUSIVE");
    checkVersion(db, path);
    configured(db);
    const from = checkVersion(db, path);
    if (from === MIGRATIONS.length) return;
    const copy = upgradeCopy ? keepUpgradeCopy(db, path, options.random) : undefined;
    migrate(db, options);
    removeUpgradeCopies(path, copy);
    options.onUpgrade?.({ from, to: MIGRATIONS.length, copy });
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
 * Moves the write-ahead log into the database file and empties the log. Does nothing while another process uses the
 * database, such as a backup that reads it. The connection must have a busy_timeout of 0. Otherwise this would wait for
 * the other process.
 * @returns whether the log is empty now
 */
export function checkpoint(db: Database): boolean {
  return db.query<{ busy: number }, []>("PRAGMA wal_checkpoint(TRUNCATE)").get()?.busy === 0;
}

/** Reads the fingerprint of the master key that sealed the secrets; undefined before the first key is recorded. */
export function sealedWith(db: Database): string | undefined {
  return db.query<{ value: string }, []>("SELECT value FROM meta WHERE name = 'master_key'").get()?.value;
}
