import { SdsError } from "../../domain/error.ts";
import { EPOCH_DATABASE } from "../copy/tables.ts";
import { EPOCH_BYTES } from "../port/store.ts";
import type { Database, Queries } from "./database.ts";
import { readMeta } from "./migrate.ts";

interface StoredEpoch {
  epoch: string;
  /** The number of the database in which it was made; null if that is not noted. */
  madeIn: string | null;
  /** The number of this database. */
  database: string;
}

/**
 * The epoch of the database. A backup that is restored with pg_restore is another database, on this server or another,
 * so it gets a new epoch. What restores a database in its place is not noticed (docs/scaling.md, "Backup").
 */
export async function openEpoch(db: Database, random: (bytes: number) => Uint8Array): Promise<Uint8Array> {
  const stored = await readEpoch(db);
  const isOfHere = stored !== undefined && stored.madeIn === stored.database;
  return Uint8Array.fromHex(isOfHere ? stored.epoch : await makeEpoch(db, random(EPOCH_BYTES).toHex()));
}

function readEpoch(queries: Queries): Promise<StoredEpoch | undefined> {
  return queries.get<StoredEpoch>(
    `SELECT value AS epoch, (SELECT value FROM meta WHERE name = $1::text) AS "madeIn",
       (SELECT system_identifier::text FROM pg_control_system()) || ' ' ||
         (SELECT oid::text FROM pg_database WHERE datname = current_database()) AS database
     FROM meta WHERE name = 'epoch'`,
    [EPOCH_DATABASE],
  );
}

/** Several nodes may start at once. The first one makes it. */
function makeEpoch(db: Database, made: string): Promise<string> {
  return db.transaction(async (tx) => {
    await tx.run("INSERT INTO meta (name, value) VALUES ('epoch', $1::text) ON CONFLICT (name) DO NOTHING", [made]);
    // A statement that waited for a lock sees the other rows as they were before it.
    await tx.run("SELECT 1 FROM meta WHERE name = 'epoch' FOR UPDATE");
    const { epoch = made, madeIn = null, database = "" } = (await readEpoch(tx)) ?? {};
    if (madeIn === database) return epoch;
    // A database that was just made, or copied by `sds copy`, has none: its epoch stays.
    const kept = madeIn === null ? epoch : made;
    await tx.run("UPDATE meta SET value = $1::text WHERE name = 'epoch'", [kept]);
    await tx.run(
      `INSERT INTO meta (name, value) VALUES ($1::text, $2::text)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      [EPOCH_DATABASE, database],
    );
    return kept;
  });
}

/** @throws SdsError `unavailable` if the database was put back since it was opened */
export async function checkEpochStays(db: Database, epoch: Uint8Array): Promise<void> {
  if ((await readMeta(db, "epoch")) === epoch.toHex()) return;
  throw new SdsError("unavailable", "The database was restored from a backup: start this program again.");
}
