import { invalid } from "../domain/error.ts";
import type { Log } from "../lib/log.ts";
import { type CopyProgress, copyRows } from "./copy/copy.ts";
import { hasFolder, makeFolder } from "./files/data-folder.ts";
import type { OpenedCheckup } from "./port/checkup.ts";
import type { Store } from "./port/store.ts";
import { loginReader, nameOf, parseServerAddress, type ServerAddress } from "./postgres/address.ts";
import { openPostgresCheckup } from "./postgres/checkup.ts";
import { openPostgresAlone, openPostgresSource } from "./postgres/copy-source.ts";
import { openPostgresTarget } from "./postgres/copy-target.ts";
import { openPostgresStore } from "./postgres/postgres-store.ts";
import type { StandbyOptions } from "./postgres/standby.ts";
import type { LoneDatabase } from "./quiet/sealed-secrets.ts";
import { backupDatabase, type CopyRequest } from "./sqlite/backup.ts";
import { findDamage, openSqliteCheckup } from "./sqlite/checkup.ts";
import { type BackupContent, verifyBackup } from "./sqlite/copy-check.ts";
import { openSqliteAlone, openSqliteSource } from "./sqlite/copy-source.ts";
import { openSqliteTarget } from "./sqlite/copy-target.ts";
import { type KeptDatabase, keptDatabases } from "./sqlite/data-files.ts";
import { noData } from "./sqlite/database.ts";
import { checkRestorable, type Restore, restoreDatabase } from "./sqlite/restore.ts";
import { readShopDomains } from "./sqlite/shop-domains.ts";
import { openSqliteStore, type SqliteOptions } from "./sqlite/sqlite-store.ts";

export { findDamage, readShopDomains };

/** Options of the PostgreSQL engine. */
interface ServerOptions {
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
  return backupDatabase(request);
}

/** Checks a restore before the command asks the user. @throws SdsError `not_found`, `invalid`, `failed` */
export function checkBackup(request: Pick<CopyRequest, "folder" | "file">): void {
  checkRestorable(request);
}

/** Reads a whole backup, without its master key. @throws SdsError `not_found`, `invalid`, `failed` */
export function checkedBackup(request: Pick<CopyRequest, "folder" | "file">): BackupContent {
  checkRestorable(request);
  return verifyBackup(request.file);
}

/**
 * Replaces the SQLite database with a backup, and keeps the old database.
 * @throws SdsError `failed` if the folder is in use or the backup needs another master key; errors of `checkBackup`
 */
export async function restoreStore(request: CopyRequest): Promise<Restore> {
  return restoreDatabase(request);
}

/** Lists old SQLite databases that were kept by a restore or an upgrade. */
export async function keptStores(folder: string): Promise<KeptDatabase[]> {
  return keptDatabases(folder);
}

/** Opens a database only for reading. @returns the problem if it cannot be opened @throws SdsError `invalid` */
export async function openCheckup(folder: string, server: Omit<ServerOptions, "file"> | null): Promise<OpenedCheckup> {
  if (server === null) return openSqliteCheckup(folder);
  return openPostgresCheckup(parseServerAddress(server.url, server.passwordFile), server.sleep);
}

export interface LoneOptions {
  location: StoreLocation;
  now: () => number;
  random: (bytes: number) => Uint8Array;
  sleep: (ms: number) => Promise<void>;
}

/** Opens a database for this process alone, to change its master key. @throws SdsError `not_found`, `failed` */
export function openAlone({ location, ...dependencies }: LoneOptions): Promise<LoneDatabase> {
  const at = locationOf(location);
  return "folder" in at
    ? openSqliteAlone(at.folder, dependencies)
    : openPostgresAlone({ address: at, ...dependencies });
}

type StoreLocation = { folder: string } | Pick<ServerOptions, "url" | "passwordFile">;

/** The two databases of `sds copy`. Each is a data folder or a PostgreSQL database. */
export interface StoreCopy {
  from: StoreLocation;
  to: StoreLocation;
  now: () => number;
  random: (bytes: number) => Uint8Array;
  sleep: (ms: number) => Promise<void>;
  onProgress: (progress: CopyProgress) => void;
}

/**
 * Copies a whole database into an empty database of the other engine. Locks both databases. After an
 * interruption programs refuse to open the target, and the next copy starts again.
 * @returns the number of copied rows, and the target
 * @throws SdsError `invalid` for two databases of one engine, `not_found` without data, `conflict` for a target with
 *   rows, `failed` for a database in use or a copy that differs
 */
export async function copyStore({
  from,
  to,
  onProgress,
  ...dependencies
}: StoreCopy): Promise<{ rows: number; to: string }> {
  const isToFolder = "folder" in to;
  if ("folder" in from === isToFolder)
    throw invalid(
      isToFolder
        ? "both databases are SQLite: use sds backup and sds restore"
        : "both databases are PostgreSQL: use its own tools, such as pg_dump",
    );
  const [sourceLocation, targetLocation] = [locationOf(from), locationOf(to)];
  const source =
    "folder" in sourceLocation
      ? await openSqliteSource(sourceLocation.folder, dependencies)
      : await openPostgresSource({ address: sourceLocation, ...dependencies });
  try {
    const target =
      "folder" in targetLocation
        ? await openSqliteTarget(targetLocation.folder, await source.sealedWith(), dependencies)
        : await openPostgresTarget({ address: targetLocation, ...dependencies });
    try {
      const { rows } = await copyRows(source, target, onProgress);
      return { rows, to: target.name };
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

function locationOf(location: StoreLocation): { folder: string } | ServerAddress {
  return "folder" in location ? location : parseServerAddress(location.url, location.passwordFile);
}
