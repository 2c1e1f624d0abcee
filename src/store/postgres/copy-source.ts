import { type CopySide, otherSchema, unfinishedCopy } from "../copy/copy.ts";
import { UNFINISHED_COPY } from "../copy/tables.ts";
import { nameOf, type ServerAddress } from "./address.ts";
import { lockWriters, postgresSide } from "./copy-side.ts";
import { openConnections } from "./database.ts";
import { beginLong } from "./long-transaction.ts";
import { checkVersion, migrate, readMeta } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";
import { noData } from "./postgres-store.ts";

/**
 * Opens a database to copy it as it is at one moment; nobody can write to it until it is closed.
 * @throws SdsError `not_found` without data, `failed` if somebody uses it
 */
export async function openPostgresSource(
  address: ServerAddress,
  sleep: (ms: number) => Promise<void>,
): Promise<CopySide> {
  const name = nameOf(address);
  await prepare(address, sleep, false);
  const tx = await beginLong(address, "ISOLATION LEVEL REPEATABLE READ READ ONLY");
  try {
    await lockWriters(tx, name, "SHARE");
    return { ...postgresSide(tx, name), close: tx.close };
  } catch (thrown) {
    await tx.close();
    throw thrown;
  }
}

/**
 * Brings the tables up to date, as every command does; makes them in a target.
 * @throws SdsError `not_found` for a source without data, `failed` for a source that is an unfinished copy or a newer
 *   schema
 */
export async function prepare(
  address: ServerAddress,
  sleep: (ms: number) => Promise<void>,
  isTarget: boolean,
): Promise<void> {
  const name = nameOf(address);
  const db = openConnections({ address, connections: 1, deadlineMs: 30_000, waitMs: 30_000, isPooled: true, sleep });
  try {
    const version = await checkVersion(db, name);
    if (!isTarget && version === 0) throw noData(name);
    if (!isTarget && (await readMeta(db, UNFINISHED_COPY)) !== undefined) throw unfinishedCopy(name);
    if (isTarget && version > 0 && version !== MIGRATIONS.length) throw otherSchema(name, version, MIGRATIONS.length);
    await migrate(db, name);
    if (version > MIGRATIONS.length) throw otherSchema(name, version, MIGRATIONS.length);
  } finally {
    await db.close();
  }
}
