import { SdsError } from "../../domain/error.ts";
import { EPOCH_DATABASE } from "../copy/tables.ts";
import { EPOCH_BYTES, FORMER_EPOCHS, formerEpochsText, readFormerEpochs, type Store } from "../port/store.ts";
import type { Database, Queries } from "./database.ts";
import { readMeta, writeMeta } from "./migrate.ts";

export type Epochs = Pick<Store, "epoch" | "formerEpochs">;

interface StoredEpoch {
  epoch: string;
  /** The database in which the epoch was made; null if unknown. */
  madeIn: string | null;
  /** This database: the server's identifier and the oid. */
  database: string;
}

/**
 * Returns the database's epochs. Makes the epoch if there is none. If pg_restore or pg_upgrade filled this database,
 * the next change of each shop begins a new branch. A restore in place is noticed only if it changes the server's
 * timeline (docs/scaling.md, "Backup").
 */
export async function openEpoch(db: Database, random: (bytes: number) => Uint8Array): Promise<Epochs> {
  const stored = await readEpoch(db);
  const isOfHere = stored !== undefined && stored.madeIn === stored.database;
  const epoch = isOfHere ? stored.epoch : await makeEpoch(db, random(EPOCH_BYTES).toHex());
  return { epoch: Uint8Array.fromHex(epoch), formerEpochs: readFormerEpochs(await readMeta(db, FORMER_EPOCHS)) };
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

/** Makes the epoch. If several nodes start at once, the first node makes the epoch and the other nodes read it. */
function makeEpoch(db: Database, made: string): Promise<string> {
  return db.transaction(async (tx) => {
    await tx.run("INSERT INTO meta (name, value) VALUES ('epoch', $1::text) ON CONFLICT (name) DO NOTHING", [made]);
    // After its wait for the lock, this statement may see old versions of other rows. So `readEpoch` reads them again.
    await tx.run("SELECT 1 FROM meta WHERE name = 'epoch' FOR UPDATE");
    const { epoch = made, madeIn = null, database = "" } = (await readEpoch(tx)) ?? {};
    if (madeIn === database) return epoch;
    // `madeIn` is null in a new database and in a copy by `sds copy`. Operators set it to '' to get a new epoch.
    const kept = madeIn === "" ? made : epoch;
    await tx.run("UPDATE meta SET value = $1::text WHERE name = 'epoch'", [kept]);
    // Locks the shops in the same order as commits do.
    if (madeIn !== null && kept === epoch)
      await tx.run(
        `WITH locked AS (SELECT shop_id FROM shop_changes ORDER BY shop_id FOR UPDATE)
         UPDATE shop_changes SET timeline = '' FROM locked WHERE locked.shop_id = shop_changes.shop_id`,
      );
    const former = await readMeta(tx, FORMER_EPOCHS);
    await writeMeta(tx, FORMER_EPOCHS, kept === epoch ? formerEpochsText(former) : formerEpochsText(epoch, former));
    await writeMeta(tx, EPOCH_DATABASE, database);
    return kept;
  });
}

/** Checks the epoch. @throws SdsError `unavailable` if the database was restored since it was opened */
export async function checkEpochStays(db: Database, epoch: Uint8Array): Promise<void> {
  if ((await readMeta(db, "epoch")) === epoch.toHex()) return;
  throw new SdsError("unavailable", "The database was restored from a backup: start this program again.");
}
