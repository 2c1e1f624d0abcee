import { Database } from "bun:sqlite";
import { closeSync, existsSync, lstatSync, openSync, readdirSync, realpathSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { codeOf, invalid, SdsError } from "../../domain/error.ts";
import { syncFolder } from "../files/data-folder.ts";
import { reasonOf } from "../files/disk-space.ts";
import { draftPath, isDraftName, publishDraft } from "../files/drafts.ts";
import { LAST_BACKUP } from "../port/store.ts";
import { checkCopy, mayBeCopy, syncFile } from "./copy-check.ts";
import { databasePath, hasDatabase, isOwnName, noData, shareFolder } from "./data-files.ts";
import { checkVersion } from "./migrate.ts";

const BUSY_TIMEOUT_MS = 30_000;
/** A draft that was not written for this long is from an interrupted backup. */
const STALE_AFTER_MS = 3_600_000;

export interface CopyRequest {
  folder: string;
  /** Path of the copy. */
  file: string;
  masterKeyFile: string;
  random: (bytes: number) => Uint8Array;
  now: number;
}

/**
 * Copies the database into a new file while the database is in use. Afterwards the file is either missing, or complete,
 * checked and synced. Needs no master key, and upgrades nothing.
 * @returns the size in bytes
 * @throws SdsError `not_found` for missing data or a missing folder, `conflict` for a file that exists, else `failed`
 */
export function backupDatabase({ folder, file, masterKeyFile, random, now }: CopyRequest): { bytes: number } {
  if (!hasDatabase(folder)) throw noData(folder);
  const target = resolve(file);
  checkTarget(target, folder, masterKeyFile);
  const lock = shareFolder(folder, BUSY_TIMEOUT_MS);
  const draft = draftPath(target, random);
  try {
    removeStaleCopies(dirname(target), now);
    copyInto(draft, databasePath(folder));
    checkCopy(draft, draft);
    syncFile(draft);
    const { size: bytes } = statSync(draft);
    publish(draft, target);
    noteBackup(databasePath(folder), now);
    return { bytes };
  } catch (thrown) {
    if (thrown instanceof SdsError && ["conflict", "not_found"].includes(thrown.code)) throw thrown;
    throw new SdsError("failed", `cannot make the backup ${file}: ${reasonOf(thrown, dirname(target))}`, {
      cause: thrown,
    });
  } finally {
    rmSync(draft, { force: true });
    rmSync(`${draft}-journal`, { force: true });
    lock.release();
  }
}

function checkTarget(target: string, folder: string, masterKeyFile: string): void {
  const parent = dirname(target);
  if (lstatSync(target, { throwIfNoEntry: false }) !== undefined) throw existsAlready(target);
  if (!existsSync(parent)) throw new SdsError("not_found", `there is no folder ${parent}`);
  const database = databasePath(folder);
  const isBesideIt = [folder, dirname(database)].some((own) => realpathSync(own) === realpathSync(parent));
  if (target === masterKeyFile || (isBesideIt && isOwnName(database, target)))
    throw invalid(`${target} is a name that sds itself uses: choose another one`);
}

function existsAlready(target: string): SdsError {
  return new SdsError("conflict", `${target} exists already: a backup overwrites nothing, choose another name`);
}

/** Copies the database in a single read transaction. So the copy has the state of one moment, and writers continue. */
function copyInto(draft: string, database: string): void {
  const db = new Database(database, { readwrite: true, create: false, strict: true });
  try {
    db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    if (checkVersion(db, database) === 0) throw noData(dirname(database));
    // If SQLite made the file, everybody could read it. So this first makes an empty file that only its owner can read.
    // SQLite accepts an empty file.
    closeSync(openSync(draft, "wx", 0o600));
    db.query("VACUUM INTO ?").run(draft);
  } finally {
    db.close(true);
  }
}

/** Renames the draft to its target. @throws SdsError `conflict` if another process made the target */
function publish(draft: string, target: string): void {
  try {
    publishDraft(draft, target);
  } catch (thrown) {
    throw codeOf(thrown) === "EEXIST" ? existsAlready(target) : thrown;
  }
  syncFolder(dirname(target));
}

const NOTE_WAIT_MS = 2_000;

/** Stores the start time of this backup, for `sds status`. Ignores errors, because the backup is valid anyway. */
function noteBackup(database: string, now: number): void {
  let db: Database | undefined;
  try {
    db = new Database(database, { readwrite: true, create: false, strict: true });
    db.run(`PRAGMA busy_timeout = ${NOTE_WAIT_MS}`);
    db.run("PRAGMA synchronous = FULL");
    db.query(
      "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    ).run(LAST_BACKUP, String(now));
  } catch {
    // The disk may be full, or the database may be too old to have this table.
  } finally {
    db?.close();
  }
}

/**
 * Removes drafts of interrupted backups from the target's folder, because drafts contain personal data. Removes drafts
 * of any target, because names of nightly backups differ.
 */
function removeStaleCopies(folder: string, now: number): void {
  for (const path of readdirSync(folder)
    .filter(isDraftName)
    .map((name) => join(folder, name))) {
    const { mtimeMs } = lstatSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: now };
    if (mtimeMs >= now - STALE_AFTER_MS || !mayBeCopy(path)) continue;
    for (const each of [`${path}-journal`, path]) rmSync(each, { force: true });
  }
}
