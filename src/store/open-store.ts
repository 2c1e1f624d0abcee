import { makeFolder } from "./data-folder.ts";
import { openSqliteStore, type SqliteOptions } from "./sqlite/sqlite-store.ts";
import type { Store } from "./store.ts";

/**
 * Opens the store in a data folder, which is made if it is missing. SQLite is the only engine today; another one is
 * chosen here.
 * @throws SdsError `failed` with what is wrong with the folder, the database or the master key
 */
export async function openStore(options: SqliteOptions): Promise<Store> {
  makeFolder(options.folder);
  return openSqliteStore(options);
}
