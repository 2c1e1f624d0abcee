import {
  existsSync,
  lstatSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { codeOf, messageOf, SdsError } from "../../domain/error.ts";
import { isoUtc } from "../../lib/time.ts";
import { unfinishedCopy } from "../copy/copy.ts";
import { syncFolder } from "../files/data-folder.ts";
import { type DataLock, shareAsServe, shareDataFolder, takeDataFolder } from "./data-lock.ts";
import { secondServe } from "./serve-note.ts";

/**
 * Suffixes of logs that are part of a database's content. A log beside another database would corrupt that database.
 * `-shm` is only the index of a log. SQLite rebuilds a missing index.
 */
const LOGS = ["-wal", "-journal"];
const INDEX = "-shm";

/** Returns the error for missing data, for commands that do not make a data folder. */
export function noData(folder: string): SdsError {
  return new SdsError(
    "not_found",
    `there is no data in ${folder}: name another folder with --data, or add a shop with ` +
      "`sds shop add alpha.myshopify.com`",
  );
}

/**
 * Returns the path of a folder's database. Resolves a symbolic link, as SQLite does. The database may be missing for a
 * moment, while a restore renames it.
 * @throws SdsError `failed` for a broken link or an unreadable folder
 */
export function databasePath(folder: string): string {
  const path = join(folder, "sds.db");
  try {
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return path;
    return realpathSync(path);
  } catch (thrown) {
    const target = codeOf(thrown) === "ENOENT" ? restoredTarget(path) : undefined;
    if (target !== undefined) return target;
    throw new SdsError("failed", `cannot open the database ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** Returns the target of a broken link, if a restored database beside the target still has to be renamed. */
function restoredTarget(path: string): string | undefined {
  try {
    const target = followLinks(path);
    return existsSync(restoredPath(target)) ? target : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Resolves links to a file that may be missing. The links must not form a cycle.
 * @throws Error if the file's folder is missing
 */
function followLinks(path: string): string {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return path;
  const target = resolve(realpathSync(dirname(path)), readlinkSync(path));
  return followLinks(join(realpathSync(dirname(target)), basename(target)));
}

/**
 * Returns the name of a restored database before its last rename. A database with this name is complete and synced. The
 * next process that opens the folder finishes the restore.
 */
export function restoredPath(database: string): string {
  return `${database}.restored`;
}

/** Returns the prefix of the names of databases that restores replaced. A time follows the prefix. */
function replacedPath(database: string): string {
  return `${database}.before-restore`;
}

/** Returns the prefix of the names of copies that upgrades keep. The upgrading version follows the prefix. */
export function upgradeCopyPath(database: string): string {
  return `${database}.before-upgrade-`;
}

export interface KeptDatabase {
  file: string;
  /** Size of the database file, including its log. */
  bytes: number;
}

/** Lists the databases that restores replaced and the copies that upgrades keep, sorted by name. */
export function keptDatabases(folder: string): KeptDatabase[] {
  const database = databasePath(folder);
  const beside = dirname(database);
  const beginnings = [replacedPath(database), upgradeCopyPath(database)];
  const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  return readdirSync(beside)
    .filter((name) => beginnings.some((beginning) => name.startsWith(basename(beginning))))
    .filter((name) => !/(-(wal|journal|shm)|\.partial)$/.test(name))
    .toSorted()
    .map((name) => join(beside, name))
    .map((file) => ({ file, bytes: ["", ...LOGS].reduce((sum, end) => sum + sizeOf(`${file}${end}`), 0) }));
}

/** Returns the name of an unfinished copy. While a file has this name, only the next `sds copy` may use the folder. */
export function unfinishedPath(database: string): string {
  return `${database}.unfinished-copy`;
}

/** Whether sds uses or reserves this name: for the database, or for a file beside it. */
export function isOwnName(database: string, path: string): boolean {
  const [own, name] = [basename(database), basename(path)];
  const isReserved = name === own || name.startsWith(`${own}-`) || /^(sds\.lock|sds\.env$|master\.key)/.test(name);
  const others = [restoredPath, replacedPath, unfinishedPath, upgradeCopyPath].map((pathOf) => pathOf(database));
  return isReserved || others.some((each) => name.startsWith(basename(each)));
}

/** Whether the folder has a database. An empty file, which an interrupted first start leaves, is not a database. */
export function hasDatabase(folder: string): boolean {
  const database = databasePath(folder);
  if (existsSync(restoredPath(database)) || existsSync(unfinishedPath(database))) return true;
  return (statSync(database, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/**
 * Takes a shared lock on a data folder. Finishes an interrupted restore first.
 * @param isServe whether this process is `serve`. A folder has only one `serve` at a time.
 * @throws SdsError `failed` if a restore or a copy locks the folder for longer than the wait, a copy is unfinished, or
 *   another `serve` runs
 */
export function shareFolder(folder: string, waitMs: number, isServe = false): DataLock {
  const database = databasePath(folder);
  for (;;) {
    const shared = isServe ? shareAsServe(folder, waitMs) : shareDataFolder(folder, waitMs);
    if (shared === undefined) throw secondServe(folder, database);
    if (existsSync(unfinishedPath(database))) {
      shared.release();
      throw unfinishedCopy(folder);
    }
    if (!existsSync(restoredPath(database))) return shared;
    shared.release();
    const alone = takeDataFolder(folder, waitMs);
    if (alone === undefined) throw new SdsError("failed", `${folder} has an unfinished restore, and is in use`);
    try {
      finishRestore(database);
    } finally {
      alone.release();
    }
  }
}

/** How long to wait for other commands that use the folder. */
const ALONE_WAIT_MS = 2_000;

/**
 * Locks a data folder for this process alone. Finishes an interrupted restore first.
 * @throws SdsError `failed` if another process uses the folder
 */
export function takeFolder(folder: string): DataLock {
  const lock = takeDataFolder(folder, ALONE_WAIT_MS);
  if (lock === undefined) throw inUse(folder);
  try {
    finishRestore(databasePath(folder));
    return lock;
  } catch (thrown) {
    lock.release();
    throw thrown;
  }
}

export function inUse(folder: string): SdsError {
  return new SdsError(
    "failed",
    `${folder} is in use: stop \`sds serve\`, wait for other commands to end, and run this again; nothing was changed`,
  );
}

/**
 * Renames the old database, then the restored database. Does nothing if there is no restored database. Can run again
 * after a kill at any step. Call this only while this process has the folder's lock exclusively.
 */
export function finishRestore(database: string): void {
  const [folder, restored] = [dirname(database), restoredPath(database)];
  if (!existsSync(restored)) return;
  try {
    const replaced = replacedNow(database);
    if (existsSync(database)) {
      renameSync(database, replaced);
      syncFolder(folder);
    }
    // The old database has a log only if it was too damaged for a checkpoint.
    for (const end of LOGS) renameIfThere(`${database}${end}`, `${replaced}${end}`);
    rmSync(`${database}${INDEX}`, { force: true });
    syncFolder(folder);
    renameSync(restored, database);
    syncFolder(folder);
  } catch (thrown) {
    throw new SdsError("failed", `cannot put ${restored} into its place: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/**
 * Returns the name for the old database. The name contains the time of the restored file. So the log gets the same name
 * as the old database, even if another process finishes the restore. If the name exists, the restored file gets a later
 * time.
 */
function replacedNow(database: string): string {
  const restored = restoredPath(database);
  for (let at = Math.floor(statSync(restored).mtimeMs / 1_000); ; at += 1) {
    const time = isoUtc(at * 1_000)
      .replaceAll(":", "")
      .replace(".000", "");
    const replaced = `${replacedPath(database)}-${time}`;
    if (!existsSync(database) || !existsSync(replaced)) return replaced;
    utimesSync(restored, at + 1, at + 1);
  }
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (thrown) {
    if (codeOf(thrown) !== "ENOENT") throw thrown;
  }
}
