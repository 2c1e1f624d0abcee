import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { messageOf, SdsError } from "../../domain/error.ts";
import { type CopySide, unfinishedCopy } from "../copy/copy.ts";
import { hasFolder } from "../files/data-folder.ts";
import type { LoneDatabase } from "../quiet/sealed-secrets.ts";
import { sqliteSide } from "./copy-side.ts";
import { databasePath, hasDatabase, inUse, noData, takeFolder, unfinishedPath } from "./data-files.ts";
import { openDatabase, sealedWith } from "./database.ts";
import type { UpgradeOptions } from "./left-over-bodies.ts";
import { isBusy } from "./lock-wait.ts";
import { quietDatabase } from "./quiet-database.ts";

const BUSY_TIMEOUT_MS = 30_000;

/**
 * Opens the database of a data folder as the source of a copy. Locks the folder until `close`. Upgrades an older
 * database first.
 * @throws SdsError `not_found` if the folder has no data, `failed` if another process uses it
 */
export async function openSqliteSource(folder: string, upgrade: UpgradeOptions): Promise<CopySide> {
  const { db, close } = openFolderAlone(folder, upgrade);
  return { ...sqliteSide(db, folder), close };
}

/** Opens the database of a data folder to change its master key. See `openSqliteSource`. */
export async function openSqliteAlone(folder: string, upgrade: UpgradeOptions): Promise<LoneDatabase> {
  const { db, close } = openFolderAlone(folder, upgrade);
  return { db: quietDatabase(db), sealedWith: sealedWith(db), close };
}

function openFolderAlone(folder: string, upgrade: UpgradeOptions): { db: Database; close: () => Promise<void> } {
  if (!hasFolder(folder) || !hasDatabase(folder)) throw noData(folder);
  const lock = takeFolder(folder);
  try {
    const path = databasePath(folder);
    if (existsSync(unfinishedPath(path))) throw unfinishedCopy(folder);
    openDatabase(path, BUSY_TIMEOUT_MS, { ...upgrade, mustExist: true, upgradeAlone: true }).close(true);
    const db = openAlone(path, folder);
    return {
      db,
      async close() {
        db.close(true);
        lock.release();
      },
    };
  } catch (thrown) {
    lock.release();
    throw cannotUse(folder, thrown);
  }
}

/**
 * Opens a database for this process alone. Also notices older programs, which do not know the folder's lock.
 * @throws SdsError `failed` if another process has the database open
 */
export function openAlone(path: string, folder: string): Database {
  const db = new Database(path, { readwrite: true, create: false, strict: true });
  try {
    // In this mode the first read takes an exclusive lock. This read fails if another process has the database open,
    // because each open WAL connection has a shared lock.
    db.run("PRAGMA locking_mode = EXCLUSIVE");
    db.query("SELECT count(*) FROM sqlite_schema").get();
    return db;
  } catch (thrown) {
    db.close(true);
    throw isBusy(thrown) ? inUse(folder) : thrown;
  }
}

export function cannotUse(folder: string, thrown: unknown): SdsError {
  if (thrown instanceof SdsError) return thrown;
  return new SdsError("failed", `cannot use the database in ${folder}: ${messageOf(thrown)}`, { cause: thrown });
}
