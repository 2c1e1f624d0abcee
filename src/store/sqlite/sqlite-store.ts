import type { Database } from "bun:sqlite";
import { statSync } from "node:fs";
import { codeOf, SdsError } from "../../domain/error.ts";
import { withoutArchivedFields } from "../engine/shown-fields.ts";
import { checkSpace, reasonOf } from "../files/disk-space.ts";
import { removeDrafts } from "../files/drafts.ts";
import { openVaultOf, type StoredFingerprint, type Vault } from "../files/vault.ts";
import {
  type DatabaseFigures,
  EPOCH_BYTES,
  FORMER_EPOCHS,
  LAST_BACKUP,
  readFormerEpochs,
  type Store,
} from "../port/store.ts";
import { hiddenKeysReader } from "../quiet/fields.ts";
import { auditedStores, quietStores } from "../quiet/quiet-stores.ts";
import { databasePath, hasDatabase, noData, shareFolder } from "./data-files.ts";
import type { DataLock } from "./data-lock.ts";
import { type BusyTimeoutMs, checkpoint, type OpenOptions, openDatabase, sealedWith } from "./database.ts";
import { deliveryQueue } from "./deliveries.ts";
import { withStoreErrors, withStoreErrorsInParts } from "./errors.ts";
import { inboxQueues } from "./inbox.ts";
import { createLockWait } from "./lock-wait.ts";
import { checkVersionStays } from "./migrate.ts";
import { mirrorStore } from "./mirror.ts";
import { pageStore } from "./pages.ts";
import { quietDatabase } from "./quiet-database.ts";
import { noteServe } from "./serve-note.ts";

export interface SqliteOptions extends OpenOptions {
  /** Folder of the database file `sds.db`. */
  folder: string;
  masterKeyFile: string;
  busyTimeoutMs: BusyTimeoutMs;
  /** The process id of `serve`; undefined for a command. A folder has only one `serve` at a time. */
  serveProcess?: number;
}

/**
 * Opens the default engine: one SQLite file.
 * @throws SdsError `failed` for an unusable database or master key, or a second `serve`; `not_found` if a database must
 *   exist and does not
 */
export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  const { folder, masterKeyFile, busyTimeoutMs, random, mustExist = false, serveProcess } = options;
  if (mustExist && !hasDatabase(folder)) throw noData(folder);
  const lock = shareFolder(folder, busyTimeoutMs, serveProcess !== undefined);
  let db: Database | undefined;
  try {
    // This is safe: no restore writes a draft while this process holds a shared lock on the folder.
    removeDrafts(databasePath(folder));
    db = openDatabase(databasePath(folder), busyTimeoutMs, options);
    if (serveProcess !== undefined) noteServe(db, serveProcess);
    const vault = await openVaultOf(fingerprintIn(db), masterKeyFile, random);
    return storeOf(db, vault, lock, options);
  } catch (thrown) {
    db?.close(true);
    lock.release();
    if (!codeOf(thrown).startsWith("SQLITE_")) throw thrown;
    const message = `cannot use the database in ${folder}: ${reasonOf(thrown, folder)}`;
    throw new SdsError("failed", message, { cause: thrown });
  }
}

function fingerprintIn(db: Database): StoredFingerprint {
  return {
    read: () => sealedWith(db),
    add: (fingerprint) => db.run("INSERT OR IGNORE INTO meta (name, value) VALUES ('master_key', ?)", [fingerprint]),
  };
}

/** Returns the epochs. The first process that opens a new or restored database makes the epoch of the database. */
function epochsOf(db: Database, random: SqliteOptions["random"]): Pick<Store, "epoch" | "formerEpochs"> {
  const stored = db.query<{ value: string }, [string]>("SELECT value FROM meta WHERE name = ?");
  if (stored.get("epoch") === null)
    db.query("INSERT OR IGNORE INTO meta (name, value) VALUES ('epoch', ?)").run(random(EPOCH_BYTES).toHex());
  const epoch = Uint8Array.fromHex(stored.get("epoch")?.value ?? "");
  return { epoch, formerEpochs: readFormerEpochs(stored.get(FORMER_EPOCHS)?.value) };
}

function storeOf(db: Database, vault: Vault, lock: DataLock, { folder, busyTimeoutMs, random }: SqliteOptions): Store {
  const epochs = epochsOf(db, random);
  const writeCheck = prepareWriteCheck(db);
  // From now on SQLite never blocks the event loop to wait for a lock.
  db.run("PRAGMA busy_timeout = 0");
  const lockWait = createLockWait(db, busyTimeoutMs);
  // On a full disk the checkpoint may fail too. Then it has freed no space.
  const truncateLog = (): boolean => {
    try {
      return checkpoint(db);
    } catch {
      return false;
    }
  };
  const remedies = { lockWait, truncateLog, folder };
  const quiet = quietDatabase(db);
  const resources = { db: quiet, slow: quiet, vault, random };
  const { deliveryLog, inboxItems, ...stores } = quietStores(resources);
  const parts = {
    ...stores,
    mirror: mirrorStore(db, random),
    deliveries: { ...deliveryQueue(db, random), ...deliveryLog },
    pages: withoutArchivedFields(pageStore(db), hiddenKeysReader(quiet)),
    inbox: { ...inboxQueues(db), ...inboxItems },
  };
  const stored = withStoreErrorsInParts(parts, remedies);
  return {
    ...stored,
    pagesFor: () => stored.pages,
    audited: (shopId, entry) => withStoreErrorsInParts(auditedStores(resources, shopId, entry), remedies),
    nodes: null,
    ...epochs,
    ...withStoreErrors(
      {
        figures: async () => figuresOf(db, databasePath(folder)),
        async check() {
          checkVersionStays(db);
          writeCheck();
          checkSpace(folder);
        },
        async checkpoint() {
          checkpoint(db);
        },
      },
      remedies,
    ),
    async close() {
      db.close(true);
      lock.release();
    },
  };
}

/** Reads the figures of a database. @param path its file */
export function figuresOf(db: Database, path: string): DatabaseFigures {
  const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  const backup = db.query<{ value: string }, [string]>("SELECT value FROM meta WHERE name = ?").get(LAST_BACKUP);
  return {
    bytes: sizeOf(path),
    walBytes: sizeOf(`${path}-wal`),
    lastBackupAt: backup === null ? null : Number(backup.value),
  };
}

/**
 * Prepares a check that fails on a full disk, because it writes. It changes the value each time, because SQLite skips a
 * write of an equal value.
 */
function prepareWriteCheck(db: Database): () => void {
  const flip = db.prepare(
    `INSERT INTO meta (name, value) VALUES ('write_check', '0')
     ON CONFLICT (name) DO UPDATE SET value = iif(value = '0', '1', '0')`,
  );
  return () => {
    db.transaction(() => flip.run()).immediate();
  };
}
