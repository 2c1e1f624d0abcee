import { type CopySide, otherSchema, unfinishedCopy } from "../copy/copy.ts";
import { UNFINISHED_COPY } from "../copy/tables.ts";
import type { LoneDatabase } from "../quiet/sealed-secrets.ts";
import { nameOf, type ServerAddress } from "./address.ts";
import { lockWriters, postgresSide } from "./copy-side.ts";
import { type Database, openConnections } from "./database.ts";
import { applyLeftOverBodies } from "./left-over-bodies.ts";
import { beginLong, serverInUse } from "./long-transaction.ts";
import { checkVersion, readMeta } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";
import { isSomeNodeAlive } from "./nodes.ts";
import { DEADLINE_MS, noData, UPGRADE_DEADLINE_MS } from "./postgres-store.ts";
import { quietDatabase } from "./quiet-database.ts";
import { checkServer } from "./server-check.ts";
import { startError } from "./start-errors.ts";
import { migrate } from "./upgrade.ts";

export interface CopySourceOptions {
  address: ServerAddress;
  /** Returns epoch milliseconds. The server's clock must be near this clock. */
  now: () => number;
  random: (bytes: number) => Uint8Array;
  sleep: (ms: number) => Promise<void>;
}

/**
 * Opens a database as the source of a copy. Locks out writers until `close`.
 * @throws SdsError `not_found` if the database has no data, `failed` if it is in use
 */
export async function openPostgresSource(options: CopySourceOptions): Promise<CopySide> {
  const { address } = options;
  const name = nameOf(address);
  await prepare(options, false);
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
 * Opens a database that no node uses, to change its master key. Until `close`, no node starts to work and no other key
 * change begins. Another key change would overwrite the file that holds the keys of this change.
 * @throws SdsError `not_found` if the database is empty, `failed` if a node is alive or another process changes the key
 */
export async function openPostgresAlone(options: CopySourceOptions): Promise<LoneDatabase> {
  const { address } = options;
  await prepare(options, false);
  const lock = await beginLong(address, "ISOLATION LEVEL READ COMMITTED");
  const db = await openForLongWork(options);
  const close = async () => {
    await Promise.all([db.close(), lock.close()]);
  };
  try {
    await lock.all("LOCK TABLE nodes IN EXCLUSIVE MODE");
    if (await isSomeNodeAlive(lock)) throw serverInUse(nameOf(address));
    return { db: quietDatabase(db), sealedWith: await readMeta(db, "master_key"), close };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

/**
 * Upgrades the tables of a source database, as every command does. Makes the tables in an empty target database.
 * @throws SdsError `not_found` if a source has no data; `failed` if a source is an unfinished copy, if the schema is
 *   too new, or if a target has an older schema
 */
export async function prepare(options: CopySourceOptions, isTarget: boolean): Promise<void> {
  try {
    await prepareUsable(options, isTarget);
  } catch (thrown) {
    throw startError(thrown, options.address);
  }
}

/** Opens connections for statements that may take hours, as in an upgrade. */
async function openForLongWork({ address, now, sleep }: CopySourceOptions): Promise<Database> {
  const { isPooled } = await checkServer(address, DEADLINE_MS, now);
  return openConnections({
    address,
    connections: 2,
    deadlineMs: UPGRADE_DEADLINE_MS,
    waitMs: DEADLINE_MS,
    isPooled,
    sleep,
  });
}

async function prepareUsable(options: CopySourceOptions, isTarget: boolean): Promise<void> {
  const { address, now, random } = options;
  const name = nameOf(address);
  const db = await openForLongWork(options);
  try {
    const version = await checkVersion(db, name);
    if (!isTarget && version === 0) throw noData(name);
    if (!isTarget && (await readMeta(db, UNFINISHED_COPY)) !== undefined) throw unfinishedCopy(name);
    if (version > MIGRATIONS.length || (isTarget && version > 0 && version < MIGRATIONS.length))
      throw otherSchema(name, version, MIGRATIONS.length);
    await migrate(db, name, { sleep: options.sleep });
    if (!isTarget) await applyLeftOverBodies(db, { now, random });
  } finally {
    await db.close();
  }
}
