import { SdsError } from "../domain/error.ts";
import { type CopyProgress, copyRows } from "./copy/copy.ts";
import { hasFolder, makeFolder } from "./files/data-folder.ts";
import type { Store } from "./port/store.ts";
import { parseServerAddress, type ServerAddress } from "./postgres/address.ts";
import { openPostgresSource } from "./postgres/copy-source.ts";
import { openPostgresTarget } from "./postgres/copy-target.ts";
import { openPostgresStore } from "./postgres/postgres-store.ts";
import { backupDatabase, type CopyRequest } from "./sqlite/backup.ts";
import { openSqliteSource } from "./sqlite/copy-source.ts";
import { openSqliteTarget } from "./sqlite/copy-target.ts";
import { noData } from "./sqlite/database.ts";
import { checkRestorable, type Restore, restoreDatabase } from "./sqlite/restore.ts";
import { openSqliteStore, type SqliteOptions } from "./sqlite/sqlite-store.ts";

/** A PostgreSQL database, and what its engine needs. */
interface ServerOptions {
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

type Place = { folder: string } | Pick<ServerOptions, "url" | "passwordFile">;

/** What `sds copy` works on. Each place is a data folder or a PostgreSQL database. */
export interface StoreCopy {
  from: Place;
  to: Place;
  now: () => number;
  sleep: (ms: number) => Promise<void>;
  onProgress: (progress: CopyProgress) => void;
}

/**
 * Copies a whole database into an empty one of the other engine. Nobody can use the two meanwhile. An interrupted copy
 * leaves a target that nobody can open, and that the next copy begins anew.
 * @returns how many rows were copied, and where to
 * @throws SdsError `invalid` for two databases of one engine, `not_found` without data, `conflict` for a target with
 *   rows, `failed` for a database that is in use, or a copy that is not the same
 */
export async function copyStore({ from, to, onProgress, ...clock }: StoreCopy): Promise<{ rows: number; to: string }> {
  const isToFolder = "folder" in to;
  if ("folder" in from === isToFolder)
    throw new SdsError(
      "invalid",
      isToFolder
        ? "both databases are SQLite: use sds backup and sds restore"
        : "both databases are PostgreSQL: use its own tools, such as pg_dump",
    );
  const [fromPlace, toPlace] = [placeOf(from), placeOf(to)];
  const source =
    "folder" in fromPlace
      ? await openSqliteSource(fromPlace.folder)
      : await openPostgresSource({ address: fromPlace, ...clock });
  try {
    const target =
      "folder" in toPlace
        ? await openSqliteTarget(toPlace.folder, await source.sealedWith())
        : await openPostgresTarget({ address: toPlace, ...clock });
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

function placeOf(place: Place): { folder: string } | ServerAddress {
  return "folder" in place ? place : parseServerAddress(place.url, place.passwordFile);
}
