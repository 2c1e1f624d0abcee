import type { Log } from "../lib/log.ts";
import { hasFolder, makeFolder } from "./files/data-folder.ts";
import type { OpenedCheckup } from "./port/checkup.ts";
import type { Store } from "./port/store.ts";
import { loginReader, nameOf, parseServerAddress } from "./postgres/address.ts";
import type { StandbyOptions } from "./postgres/standby.ts";
import type { CopyRequest } from "./sqlite/backup.ts";
import type { BackupContent } from "./sqlite/copy-check.ts";
import { type KeptDatabase, keptDatabases, noData } from "./sqlite/data-files.ts";
import type { Restore } from "./sqlite/restore.ts";
import type { SqliteOptions } from "./sqlite/sqlite-store.ts";

/** Options of the PostgreSQL engine. */
export interface ServerOptions {
  /** Address of the database. Can contain a password. */
  url: string;
  /** The file that has the address; null, the default, if the address is not in a file. */
  file?: string | null;
  /** A file in libpq's .pgpass format, used if the address has no password; or null. */
  passwordFile: string | null;
  sleep: (ms: number) => Promise<void>;
  /** Called with the progress of an upgrade that this or another program runs. Default: logs the progress. */
  onUpgradeStep?: (text: string) => void;
  /** Maximum wait for another program that upgrades the database. Default: no limit. */
  upgradeWaitMs?: number;
  /** Address of a standby from which pages are read; null, the default, without a standby. */
  readUrl?: string | null;
  /** Log of upgrades and of the standby's problems. Without a log, the standby is not used. */
  log?: Log;
  /** Milliseconds of a clock that only goes forward. Default: the process's clock. */
  clock?: () => number;
}

export interface StoreOptions extends SqliteOptions {
  /** Default: SQLite in the data folder. */
  server?: ServerOptions | null;
}

/**
 * Opens the store: a PostgreSQL database if `server` is given, else SQLite in the data folder. Makes a missing folder
 * and missing tables, unless `mustExist` is set.
 * @throws SdsError `failed` for an unusable folder, database or master key; `invalid` for a bad address; `not_found`
 *   for missing data
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const { folder, server = null, mustExist = false } = options;
  if (server !== null) {
    const address = parseServerAddress(server.url, server.passwordFile);
    const { openPostgresStore } = await import("./postgres/postgres-store.ts");
    return openPostgresStore({
      onUpgradeStep: (step) => server.log?.info("upgrading the database", { step }),
      ...options,
      ...server,
      address,
      login: loginReader(address, { ...server, file: server.file ?? null }),
      standby: standbyOf(server),
    });
  }
  if (!mustExist) makeFolder(folder);
  else if (!hasFolder(folder)) throw noData(folder);
  const { openSqliteStore } = await import("./sqlite/sqlite-store.ts");
  return openSqliteStore(options);
}

function standbyOf({
  readUrl: url = null,
  passwordFile,
  log,
  clock = () => performance.now(),
}: ServerOptions): StandbyOptions | undefined {
  if (url === null || log === undefined) return undefined;
  const address = parseServerAddress(url, passwordFile);
  return { address, login: loginReader(address, { url, passwordFile, file: null }), log, clock };
}

/** Returns the name of a database for messages, without user and password. */
export function storeName(folder: string, server: Pick<ServerOptions, "url" | "passwordFile"> | null): string {
  return server === null ? folder : nameOf(parseServerAddress(server.url, server.passwordFile));
}

/**
 * Copies the SQLite database into a new file while it is in use. Does not copy the master key.
 * @throws SdsError `not_found` for missing data or a missing folder, `conflict` for a file that exists, `failed`
 */
export async function backupStore(request: CopyRequest): Promise<{ bytes: number }> {
  if (!hasFolder(request.folder)) throw noData(request.folder);
  const { backupDatabase } = await import("./sqlite/backup.ts");
  return backupDatabase(request);
}

/** Checks a restore before the command asks the user. @throws SdsError `not_found`, `invalid`, `failed` */
export async function checkBackup(request: Pick<CopyRequest, "folder" | "file">): Promise<void> {
  const { checkRestorable } = await import("./sqlite/restore.ts");
  checkRestorable(request);
}

/** Reads a whole backup, without its master key. @throws SdsError `not_found`, `invalid`, `failed` */
export async function checkedBackup(request: Pick<CopyRequest, "folder" | "file">): Promise<BackupContent> {
  await checkBackup(request);
  const { verifyBackup } = await import("./sqlite/copy-check.ts");
  return verifyBackup(request.file);
}

/**
 * Replaces the SQLite database with a backup, and keeps the old database.
 * @throws SdsError `failed` if the folder is in use or the backup needs another master key; errors of `checkBackup`
 */
export async function restoreStore(request: CopyRequest): Promise<Restore> {
  const { restoreDatabase } = await import("./sqlite/restore.ts");
  return restoreDatabase(request);
}

/** Lists old SQLite databases that were kept by a restore or an upgrade. */
export async function keptStores(folder: string): Promise<KeptDatabase[]> {
  return keptDatabases(folder);
}

/** Opens a database only for reading. @returns the problem if it cannot be opened @throws SdsError `invalid` */
export async function openCheckup(folder: string, server: Omit<ServerOptions, "file"> | null): Promise<OpenedCheckup> {
  if (server === null) {
    const { openSqliteCheckup } = await import("./sqlite/checkup.ts");
    return openSqliteCheckup(folder);
  }
  const { openPostgresCheckup } = await import("./postgres/checkup.ts");
  return openPostgresCheckup(parseServerAddress(server.url, server.passwordFile), server.sleep);
}

/** Searches a whole SQLite database for damage. @returns the first damage; undefined for an undamaged database */
export async function findDamage(folder: string): Promise<string | undefined> {
  return (await import("./sqlite/checkup.ts")).findDamage(folder);
}

/** Returns the domains of all shops in a SQLite database. Upgrades nothing, and waits for nobody. */
export async function readShopDomains(folder: string): Promise<string[]> {
  return (await import("./sqlite/shop-domains.ts")).readShopDomains(folder);
}
