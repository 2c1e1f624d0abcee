import { existsSync, lstatSync, readlinkSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { codeOf, messageOf, SdsError } from "../../domain/error.ts";
import { unfinishedCopy } from "../copy/copy.ts";
import { syncFolder } from "../files/data-folder.ts";
import { type DataLock, shareDataFolder, takeDataFolder } from "./data-lock.ts";

/**
 * Logs that are part of a database's content: beside another database they would corrupt it. `-shm` is only their
 * index, which SQLite rebuilds.
 */
const LOGS = ["-wal", "-journal"];
const INDEX = "-shm";

/**
 * The path of a folder's database. A symbolic link is resolved, as SQLite does. The file is missing while a restore
 * renames it.
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

/** @returns the target of a link, if a restored database waits there to be renamed */
function restoredTarget(path: string): string | undefined {
  try {
    const target = followLinks(path);
    return existsSync(restoredPath(target)) ? target : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Resolves links to a file that may be missing. The links must not form a ring.
 * @throws Error if the file's folder is missing
 */
function followLinks(path: string): string {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return path;
  const target = resolve(realpathSync(dirname(path)), readlinkSync(path));
  return followLinks(join(realpathSync(dirname(target)), basename(target)));
}

/**
 * Name of a whole, synced database of a restore, before its last rename. This name decides: the next process that opens
 * the folder finishes the restore.
 */
export function restoredPath(database: string): string {
  return `${database}.restored`;
}

/** Name of the database that the last restore replaced. */
export function replacedPath(database: string): string {
  return `${database}.before-restore`;
}

/** Name of an unfinished copy. While it exists, only the next `sds copy` uses the folder. */
export function unfinishedPath(database: string): string {
  return `${database}.unfinished-copy`;
}

/** Whether the database uses, or may use, this name. */
export function isOwnName(database: string, path: string): boolean {
  const [own, name] = [basename(database), basename(path)];
  const isReserved = name === own || name.startsWith(`${own}-`) || name.startsWith("sds.lock");
  const others = [restoredPath(database), replacedPath(database), unfinishedPath(database)];
  return isReserved || others.some((each) => name.startsWith(basename(each)));
}

/** Whether the folder has a database. An interrupted first start leaves an empty file, which is not one. */
export function hasDatabase(folder: string): boolean {
  const database = databasePath(folder);
  if (existsSync(restoredPath(database)) || existsSync(unfinishedPath(database))) return true;
  return (statSync(database, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/**
 * Shares a data folder. Finishes an interrupted restore first.
 * @throws SdsError `failed` if a restore or a copy locks the folder for longer than the wait, or a copy is unfinished
 */
export function shareFolder(folder: string, waitMs: number): DataLock {
  const database = databasePath(folder);
  for (;;) {
    const shared = shareDataFolder(folder, waitMs);
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

/** How long to wait for commands that use the folder. */
const ALONE_WAIT_MS = 2_000;

/**
 * Locks a data folder. Finishes an interrupted restore first.
 * @throws SdsError `failed` if another process uses it
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
 * Renames the old database, then the restored one. Does nothing without a restored one. It may be killed at any step
 * and run again. Only a process that locks the folder may call it.
 */
export function finishRestore(database: string): void {
  const [folder, restored, replaced] = [dirname(database), restoredPath(database), replacedPath(database)];
  if (!existsSync(restored)) return;
  try {
    if (existsSync(database)) {
      for (const end of [...LOGS, INDEX]) rmSync(`${replaced}${end}`, { force: true });
      renameSync(database, replaced);
      syncFolder(folder);
    }
    // A log exists only if the old database is too damaged to be checkpointed.
    for (const end of LOGS) renameIfThere(`${database}${end}`, `${replaced}${end}`);
    rmSync(`${database}${INDEX}`, { force: true });
    syncFolder(folder);
    renameSync(restored, database);
    syncFolder(folder);
  } catch (thrown) {
    throw new SdsError("failed", `cannot put ${restored} into its place: ${messageOf(thrown)}`, { cause: thrown });
  }
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (thrown) {
    if (codeOf(thrown) !== "ENOENT") throw thrown;
  }
}
