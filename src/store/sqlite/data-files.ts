import { existsSync, lstatSync, readlinkSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { codeOf, messageOf, SdsError } from "../../domain/error.ts";
import { unfinishedCopy } from "../copy/copy.ts";
import { syncFolder } from "../files/data-folder.ts";
import { type DataLock, shareDataFolder, takeDataFolder } from "./data-lock.ts";

/**
 * Logs that belong to a database's content. The log of one database beside another would be mixed with it. `-shm` is
 * only their index, which SQLite makes anew.
 */
const LOGS = ["-wal", "-journal"];
const INDEX = "-shm";

/**
 * The database of a data folder. If it is a symbolic link, this is the file that it leads to, as for SQLite. That file
 * is missing while a restore changes its name.
 * @throws SdsError `failed` for a link that leads nowhere, or a folder that cannot be looked into
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

/** @returns where a link leads if a restored database waits there for its place */
function restoredTarget(path: string): string | undefined {
  try {
    const target = followLinks(path);
    return existsSync(restoredPath(target)) ? target : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Where links lead although no file is at their end. There must be no ring of links.
 * @throws Error if its folder is missing
 */
function followLinks(path: string): string {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return path;
  const target = resolve(realpathSync(dirname(path)), readlinkSync(path));
  return followLinks(join(realpathSync(dirname(target)), basename(target)));
}

/**
 * A new database, whole and on the disk, that a restore has not put into its place yet. Once it has this name, the
 * folder's state is the new one: whoever comes next puts it into its place.
 */
export function restoredPath(database: string): string {
  return `${database}.restored`;
}

/** The database that the last restore replaced. */
export function replacedPath(database: string): string {
  return `${database}.before-restore`;
}

/** A database that `sds copy` has not finished. Nobody uses the folder while it is there, except the next copy. */
export function unfinishedPath(database: string): string {
  return `${database}.unfinished-copy`;
}

/** Whether a file beside the database has, or may get, a name that the database uses. */
export function isOwnName(database: string, path: string): boolean {
  const [own, name] = [basename(database), basename(path)];
  const isReserved = name === own || name.startsWith(`${own}-`) || name.startsWith("sds.lock");
  const others = [restoredPath(database), replacedPath(database), unfinishedPath(database)];
  return isReserved || others.some((each) => name.startsWith(basename(each)));
}

/** Whether the folder has a database. An empty file is what an interrupted first start left. */
export function hasDatabase(folder: string): boolean {
  const database = databasePath(folder);
  if (existsSync(restoredPath(database)) || existsSync(unfinishedPath(database))) return true;
  return (statSync(database, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/**
 * Shares a data folder. A restore that was interrupted is finished first.
 * @throws SdsError `failed` if a restore or a copy has the folder for longer than the wait, or left a copy unfinished
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

/** How long it waits for commands that use the folder, in milliseconds. */
const ALONE_WAIT_MS = 2_000;

/**
 * Takes a data folder alone. A restore that was interrupted is finished first.
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
 * Keeps the old database, and puts the restored one into its place. It does nothing if there is none, and may be
 * interrupted at any step and run again. Only a process that has the folder alone may run it.
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
    // A log is there only if the old database was damaged so that its log could not be moved into it.
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
