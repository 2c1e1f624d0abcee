import { invalid } from "../domain/error.ts";
import { type CopyProgress, copyRows } from "./copy/copy.ts";
import type { ServerOptions } from "./open-store.ts";
import { parseServerAddress, type ServerAddress } from "./postgres/address.ts";
import { openPostgresAlone, openPostgresSource } from "./postgres/copy-source.ts";
import { openPostgresTarget } from "./postgres/copy-target.ts";
import type { LoneDatabase } from "./quiet/sealed-secrets.ts";
import { openSqliteAlone, openSqliteSource } from "./sqlite/copy-source.ts";
import { openSqliteTarget } from "./sqlite/copy-target.ts";

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
