import { hasFolder, makeFolder } from "./data-folder.ts";
import { backupDatabase, type CopyRequest } from "./sqlite/backup.ts";
import { noData } from "./sqlite/database.ts";
import { checkRestorable, type Restore, restoreDatabase } from "./sqlite/restore.ts";
import { openSqliteStore, type SqliteOptions } from "./sqlite/sqlite-store.ts";
import type { Store } from "./store.ts";

/**
 * Opens the store in a data folder. SQLite is the only engine today; another one is chosen here.
 * @throws SdsError `failed` with what is wrong with the folder, the database or the master key; `not_found` if the
 *   folder must have data and has none. Otherwise a missing folder is made.
 */
export async function openStore(options: SqliteOptions): Promise<Store> {
  const { folder, mustExist = false } = options;
  if (!mustExist) makeFolder(folder);
  else if (!hasFolder(folder)) throw noData(folder);
  return openSqliteStore(options);
}

/**
 * Copies what is stored into a new file, while others use it. The master key is not in it.
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
 * Replaces what is stored by a copy. The old database is kept.
 * @throws SdsError `failed` if the folder is in use or the copy needs another master key; else like checkBackup
 */
export async function restoreStore(request: CopyRequest): Promise<Restore> {
  return restoreDatabase(request);
}
