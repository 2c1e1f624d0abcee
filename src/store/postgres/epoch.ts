import { SdsError } from "../../domain/error.ts";
import { EPOCH_DATABASE } from "../copy/tables.ts";
import { EPOCH_BYTES } from "../port/store.ts";
import type { Database, Queries } from "./database.ts";
import { readMeta } from "./migrate.ts";

interface StoredEpoch {
  epoch: string;
  /** The oid of the database that made it; null if not noted. */
  madeIn: string | null;
  /** The oid of this database. */
  database: string;
}

/**
 * The epoch of the database. pg_restore fills another database, so that one gets a new epoch. A restore in place cannot
 * be noticed (docs/scaling.md, "Backup").
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

/** Several nodes may start at once: the first one makes the epoch. */
function makeEpoch(db: Database, made: string): Promise<string> {
  return db.transaction(async (tx) => {
    await tx.run("INSERT INTO meta (name, value) VALUES ('epoch', $1::text) ON CONFLICT (name) DO NOTHING", [made]);
    // A statement that waited for a lock sees other rows as of its start, so it needs a second one.
    await tx.run("SELECT 1 FROM meta WHERE name = 'epoch' FOR UPDATE");
    const { epoch = made, madeIn = null, database = "" } = (await readEpoch(tx)) ?? {};
    if (madeIn === database) return epoch;
    // A new database, or one from `sds copy`, has no oid noted: its epoch stays.
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

/** @throws SdsError `unavailable` if the database was restored since it was opened */
export async function checkEpochStays(db: Database, epoch: Uint8Array): Promise<void> {
  if ((await readMeta(db, "epoch")) === epoch.toHex()) return;
  throw new SdsError("unavailable", "The database was restored from a backup: start this program again.");
}
