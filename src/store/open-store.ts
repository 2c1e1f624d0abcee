import { hasFolder, makeFolder } from "./data-folder.ts";
import { parseServerAddress } from "./postgres/address.ts";
import { openPostgresStore } from "./postgres/postgres-store.ts";
import { backupDatabase, type CopyRequest } from "./sqlite/backup.ts";
import { noData } from "./sqlite/database.ts";
import { checkRestorable, type Restore, restoreDatabase } from "./sqlite/restore.ts";
import { openSqliteStore, type SqliteOptions } from "./sqlite/sqlite-store.ts";
import type { Store } from "./store.ts";

/** A PostgreSQL database, and what its engine needs. */
export interface ServerOptions {
  /** May hold a password. */
  url: string;
  /** Where the password is if the address has none: a file in the form of libpq's .pgpass, or null. */
  passwordFile: string | null;
  now: () => number;
  sleep: (ms: number) => Promise<void>;
}

export interface StoreOptions extends SqliteOptions {
  /** Without it, the database is SQLite in the data folder. */
  server?: ServerOptions | null;
}

/**
 * Opens the store: a PostgreSQL database if one is named, else SQLite in the data folder.
 * @throws SdsError `failed` with what is wrong with the folder, the database or the master key; `invalid` for an
 *   address that cannot be used; `not_found` if there must be data and there is none. Otherwise a missing folder, and
 *   missing tables, are made.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { folder, server = null, mustExist = false } = options;
  if (server !== null) {
    const address = parseServerAddress(server.url, server.passwordFile);
    // For a new master key.
    if (!mustExist) makeFolder(folder);
    return openPostgresStore({ ...options, ...server, address });
  }
  if (!mustExist) makeFolder(folder);
  else if (!hasFolder(folder)) throw noData(folder);
  return openSqliteStore(options);
}

/**
 * Copies the SQLite database into a new file, while others use it. The master key is not in it.
 * @throws SdsError `not_found` for missing data or a missing folder, `conflict` for a file that exists, `failed`
 */
export async function backupStore(request: CopyRequest): Promise<{ bytes: number }> {
  if (!hasFolder(request.folder)) throw noData(request.folder);
  return backupDatabase(request);
}

/**
 * What refuses a restore at once, before the user is asked.
 * @throws SdsError `not_found`, `invalid`, `failed`
 */
export function checkBackup(request: Pick<CopyRequest, "folder" | "file">): void {
  checkRestorable(request);
}

/**
 * Replaces the SQLite database by a copy. The old database is kept.
 * @throws SdsError `failed` if the folder is in use or the copy needs another master key; else like checkBackup
 */
export async function restoreStore(request: CopyRequest): Promise<Restore> {
  return restoreDatabase(request);
}
