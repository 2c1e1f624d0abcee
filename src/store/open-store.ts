import { hasFolder, makeFolder } from "./data-folder.ts";
import { noData } from "./sqlite/database.ts";
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
