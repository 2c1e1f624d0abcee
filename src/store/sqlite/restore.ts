import { Database } from "bun:sqlite";
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { codeOf, invalid, messageOf, SdsError } from "../../domain/error.ts";
import { unfinishedCopy } from "../copy/copy.ts";
import { makeFolder, syncFolder } from "../files/data-folder.ts";
import { reasonOf } from "../files/disk-space.ts";
import { draftPath, removeDrafts } from "../files/drafts.ts";
import { giveToOwner } from "../files/file-owner.ts";
import { readMasterKey } from "../files/master-key.ts";
import { FORMER_EPOCHS, formerEpochsText } from "../port/store.ts";
import type { CopyRequest } from "./backup.ts";
import { checkCopy, checkHeader, syncFile } from "./copy-check.ts";
import {
  databasePath,
  finishRestore,
  inUse,
  keptDatabases,
  restoredPath,
  takeFolder,
  unfinishedPath,
} from "./data-files.ts";
import { isBusy } from "./lock-wait.ts";

/** How long a restore waits for older programs, which do not know the folder's lock. */
const WAIT_MS = 2_000;
const CHUNK_BYTES = 1024 * 1024;

export interface Restore {
  bytes: number;
  /** Paths of the old databases: of this restore, and of an interrupted restore that this restore finished first. */
  kept: string[];
  /** Whether the file of the copy's master key exists. */
  hasMasterKey: boolean;
}

/**
 * Checks a copy before a restore changes anything.
 * @throws SdsError `not_found`, `invalid` for a file that is not a copy, `failed` for an unreadable file
 */
export function checkRestorable({ folder, file }: Pick<CopyRequest, "folder" | "file">): void {
  const stat = statOf(file);
  if (stat === undefined) throw new SdsError("not_found", `there is no file ${file}`);
  if (!stat.isFile()) throw invalid(`${file} is not a file`);
  const own = statOf(join(folder, "sds.db"));
  if (own !== undefined && own.ino === stat.ino && own.dev === stat.dev)
    throw invalid(`${file} is the database itself, not a backup of it`);
  checkHeader(file);
  if ((statOf(`${file}-wal`)?.size ?? 0) > 0)
    throw invalid(
      `${file} is not a whole copy, because a part of it is in ${file}-wal: put both into an empty folder as sds.db ` +
        "and sds.db-wal, and run `sds --data FOLDER backup FILE`",
    );
}

/** @returns undefined for a missing file. @throws SdsError `failed` for an unreadable file */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (thrown) {
    throw new SdsError("failed", `cannot read ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/**
 * Replaces the database by a copy, and keeps the old database. The copy is written, checked and synced beside the
 * database. Then a rename replaces the database. So an interruption leaves either the old or the new database.
 * @throws SdsError `failed` if another process uses the folder or the copy needs another master key; also the errors of
 *   `checkRestorable`
 */
export async function restoreDatabase(request: CopyRequest): Promise<Restore> {
  const { folder, file, masterKeyFile, random } = request;
  checkRestorable(request);
  makeFolder(folder);
  const known = new Set(keptFiles(folder));
  const lock = takeFolder(folder);
  try {
    const database = databasePath(folder);
    if (existsSync(unfinishedPath(database))) throw unfinishedCopy(folder);
    removeDrafts(database);
    const draft = draftPath(database, random);
    try {
      const bytes = copyFile(file, draft, statOf(database) ?? statSync(folder));
      const { sealedWith } = checkCopy(draft, file, { compareSchema: true });
      const hasMasterKey = await checkMasterKey(masterKeyFile, sealedWith);
      endEpoch(draft, existsSync(database) ? finishLog(database, folder) : "");
      syncFile(draft);
      renameSync(draft, restoredPath(database));
      syncFolder(dirname(database));
      finishRestore(database);
      return { bytes, kept: keptFiles(folder).filter((kept) => !known.has(kept)), hasMasterKey };
    } finally {
      rmSync(draft, { force: true });
    }
  } finally {
    lock.release();
  }
}

function keptFiles(folder: string): string[] {
  return keptDatabases(folder).map(({ file }) => file);
}

/**
 * Makes the epoch of the copy a former epoch. Otherwise checkpoints from after the backup would stay valid, and readers
 * that continue from them would miss changes. The next start makes a new epoch. Such checkpoints are then refused as
 * `restored`.
 * @param replaced epochs of the replaced database
 */
function endEpoch(path: string, replaced: string): void {
  const db = new Database(path, { readwrite: true, create: false });
  try {
    const former = formerEpochsText(replaced, epochsIn(db));
    const table = metaTable(db);
    if (former === "" || table === undefined) return;
    db.query(`INSERT OR REPLACE INTO ${table} (name, value) VALUES (?, ?)`).run(FORMER_EPOCHS, former);
    db.run(`DELETE FROM ${table} WHERE name = 'epoch'`);
  } finally {
    db.close(true);
  }
}

/** Returns the epoch and the former epochs; empty for a database without them. */
function epochsIn(db: Database): string {
  const table = metaTable(db);
  if (table === undefined) return "";
  const read = db.query<{ value: string }, [string]>(`SELECT value FROM ${table} WHERE name = ?`);
  return formerEpochsText(read.get("epoch")?.value, read.get(FORMER_EPOCHS)?.value);
}

/** Finds the table `meta`, which before schema 5 was called `facts`; undefined in a database of another program. */
function metaTable(db: Database): string | undefined {
  const tables = db.query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE name IN ('meta', 'facts')");
  return tables.get()?.name;
}

/**
 * Copies a file and syncs the copy.
 * @param owned a file or folder; the copy gets the same owner
 * @returns the size in bytes
 * @throws SdsError `failed`, for instance if the disk is full
 */
function copyFile(from: string, to: string, owned: Stats): number {
  const buffer = Buffer.alloc(CHUNK_BYTES);
  let bytes = 0;
  const opened: number[] = [];
  const open = (path: string, flags: string) => {
    const fd = openSync(path, flags, 0o600);
    opened.push(fd);
    return fd;
  };
  try {
    const [source, target] = [open(from, "r"), open(to, "wx")];
    giveToOwner(target, owned);
    for (let read = readSync(source, buffer); read > 0; read = readSync(source, buffer)) {
      for (let written = 0; written < read; ) written += writeSync(target, buffer, written, read - written);
      bytes += read;
    }
    fsyncSync(target);
    return bytes;
  } catch (thrown) {
    throw new SdsError("failed", `cannot copy ${from} to ${to}: ${reasonOf(thrown, dirname(to))}`, { cause: thrown });
  } finally {
    for (const fd of opened) closeSync(fd);
  }
}

/** @returns whether the master key exists @throws SdsError `failed` if the copy has another key */
async function checkMasterKey(path: string, sealedWith: string | undefined): Promise<boolean> {
  const key = await readMasterKey(path, sealedWith);
  if (key === undefined || sealedWith === undefined || key.fingerprint === sealedWith) return key !== undefined;
  throw new SdsError(
    "failed",
    `the secrets in this backup were encrypted with another master key than ${path}: put that key there first; ` +
      "nothing was changed",
  );
}

/**
 * SQLite's error codes for a damaged file. A damaged database is kept with its log beside it. Any other error may be
 * temporary, such as a disk error or a missing permission. Such an error makes the restore fail, because the log must
 * first be moved into the database.
 */
const DAMAGED = /^SQLITE_(CORRUPT|NOTADB|FORMAT)/;

/**
 * Moves the log of the old database into the database's file, so that a single file has everything.
 * @returns the epochs of the old database; empty if it is damaged
 * @throws SdsError `failed` if an older program, which does not know the folder's lock, uses the database
 */
function finishLog(database: string, folder: string): string {
  let db: Database | undefined;
  try {
    db = new Database(database, { readwrite: true, create: false });
    db.run(`PRAGMA busy_timeout = ${WAIT_MS}`);
    // In this mode the first read takes an exclusive lock. This read fails if another process has the database open,
    // because each open WAL connection has a shared lock.
    db.run("PRAGMA locking_mode = EXCLUSIVE");
    db.query("PRAGMA journal_mode = DELETE").get();
    return epochsIn(db);
  } catch (thrown) {
    if (isBusy(thrown)) throw inUse(folder);
    if (!DAMAGED.test(codeOf(thrown)))
      throw new SdsError("failed", `cannot keep the old database ${database}: ${messageOf(thrown)}`, { cause: thrown });
    return "";
  } finally {
    db?.close(true);
  }
}
