import type { Database } from "bun:sqlite";
import { existsSync, renameSync, rmSync, truncateSync } from "node:fs";
import { dirname, join } from "node:path";
import { codeOf, messageOf, SdsError } from "../../domain/error.ts";
import { nextTurn } from "../../lib/waits.ts";
import { type CopyTarget, describeRow, notEmpty, otherSchema } from "../copy/copy.ts";
import { LISTING_TRIGGERS } from "../copy/listing-triggers.ts";
import { COPIED_TABLES, type CopiedTable, filledTablesText, placeIn } from "../copy/tables.ts";
import type { CopiedRow, Value } from "../copy/tally.ts";
import { makeFolder, syncFolder } from "../files/data-folder.ts";
import { removeDrafts } from "../files/drafts.ts";
import { makeOwnedFile } from "../files/file-owner.ts";
import { readMasterKey } from "../files/master-key.ts";
import { syncFile } from "./copy-check.ts";
import { sqliteSide } from "./copy-side.ts";
import { cannotUse, openAlone } from "./copy-source.ts";
import { databasePath, takeFolder, unfinishedPath } from "./data-files.ts";
import { openDatabase } from "./database.ts";
import type { UpgradeOptions } from "./left-over-bodies.ts";
import { checkVersion } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";

const BUSY_TIMEOUT_MS = 30_000;
/** Memory for indexes. Rows do not arrive in the order of the indexes, so the indexes should stay in memory. */
const CACHE_KIB = 128 * 1024;

/**
 * Begins a copy in a data folder. Locks the folder until `close`. Makes the folder if it is missing. `finish` renames
 * the copy to the database's name.
 * @param sealedWith fingerprint of the master key that sealed the source's secrets
 * @throws SdsError `conflict` for a database with rows, `failed` for a folder in use or with a different master key
 */
export async function openSqliteTarget(
  folder: string,
  sealedWith: string | undefined,
  options: UpgradeOptions,
): Promise<CopyTarget> {
  makeFolder(folder);
  const key = await readMasterKey(join(folder, "master.key"), sealedWith);
  if (key !== undefined && sealedWith !== undefined && key.fingerprint !== sealedWith)
    throw new SdsError(
      "failed",
      `the secrets of the source were encrypted with another master key than ${join(folder, "master.key")}; ` +
        "nothing was changed",
    );
  const lock = takeFolder(folder);
  try {
    const database = databasePath(folder);
    checkEmpty(database, folder);
    removeDrafts(database);
    const path = unfinishedPath(database);
    for (const end of ["", "-journal", "-wal", "-shm"]) rmSync(`${path}${end}`, { force: true });
    makeOwnedFile(path);
    syncFolder(dirname(path));
    const target = targetIn(openDraft(path, options), { path, database, folder });
    return {
      ...target,
      async close() {
        await target.close();
        lock.release();
      },
    };
  } catch (thrown) {
    lock.release();
    throw cannotUse(folder, thrown);
  }
}

/**
 * Checks that the target has no rows. @throws SdsError `conflict` for a database with rows, `failed` for a database in
 * use or with a different schema
 */
function checkEmpty(database: string, folder: string): void {
  if (!existsSync(database)) return;
  const db = openAlone(database, folder);
  try {
    const version = checkVersion(db, database);
    if (version === 0) return;
    if (version !== MIGRATIONS.length) throw otherSchema(database, version, MIGRATIONS.length);
    const filled = db.query<{ name: string }, []>(`${filledTablesText("sqlite")} LIMIT 1`).get();
    if (filled !== null) throw notEmpty(folder, filled.name);
    // Moves the log into the file, because a database with a log beside it must not be replaced.
    db.run("PRAGMA journal_mode = DELETE");
  } finally {
    db.close(true);
  }
}

/** Opens the file of the unfinished copy. It is not synced on purpose, because an unfinished copy is thrown away. */
function openDraft(path: string, options: UpgradeOptions): Database {
  const db = openDatabase(path, BUSY_TIMEOUT_MS, options);
  db.run("PRAGMA journal_mode = MEMORY");
  db.run("PRAGMA synchronous = OFF");
  db.run("PRAGMA locking_mode = EXCLUSIVE");
  db.run(`PRAGMA cache_size = -${CACHE_KIB}`);
  for (const trigger of Object.values(LISTING_TRIGGERS)) db.run(trigger);
  return db;
}

interface TargetFiles {
  path: string;
  database: string;
  folder: string;
}

function targetIn(db: Database, { path, database, folder }: TargetFiles): CopyTarget {
  const texts = new Map(COPIED_TABLES.map((table) => [table, writeText(table)]));
  let isOpen = true;
  const close = () => {
    if (isOpen) db.close(true);
    isOpen = false;
  };
  return {
    ...sqliteSide(db, folder),

    async write(table, rows) {
      // Lets the source send the query for the next rows now.
      await nextTurn();
      const statement = db.query(texts.get(table) ?? "");
      const valuesOf = writtenValues(table);
      db.run("BEGIN");
      for (const row of rows) {
        try {
          statement.run(...valuesOf(row));
        } catch (thrown) {
          throw cannotWrite(table, row, folder, thrown);
        }
      }
      db.run("COMMIT");
    },

    async setLastNumber(table, last) {
      const { stored } = placeIn("sqlite", table);
      db.query("DELETE FROM sqlite_sequence WHERE name = ?").run(stored);
      if (last > 0) db.query("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)").run(stored, last);
    },

    async finish() {
      close();
      syncFile(path);
      renameSync(path, database);
      syncFolder(dirname(database));
    },

    async close() {
      if (!isOpen) return;
      close();
      // The content is not needed, because the file's name marks the copy as unfinished.
      truncateSync(path);
    },
  };
}

function writeText(table: CopiedTable): string {
  const { stored, isPart, written, expression } = placeIn("sqlite", table);
  const columns = written.map(({ column }) => column);
  if (!isPart) return `INSERT INTO ${stored} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
  const changed = columns.filter((column) => !table.key.includes(column));
  const rows = table.key.map((column) => `${expression(column)} = ?`);
  return `UPDATE ${stored} SET ${changed.map((column) => `${column} = ?`).join(", ")} WHERE ${rows.join(" AND ")}`;
}

function writtenValues(table: CopiedTable): (row: CopiedRow) => Exclude<Value, boolean>[] {
  const { isPart, written } = placeIn("sqlite", table);
  const names = Object.keys(table.columns);
  const places = isPart
    ? [
        ...written.filter(({ column }) => !table.key.includes(column)).map(({ index }) => index),
        ...table.key.map((column) => names.indexOf(column)),
      ]
    : written.map(({ index }) => index);
  return (row) =>
    places.map((place) => {
      const value = row[place] ?? null;
      return typeof value === "boolean" ? Number(value) : value;
    });
}

function cannotWrite(table: CopiedTable, row: CopiedRow, folder: string, thrown: unknown): SdsError {
  const reason = /^SQLITE_(FULL|IOERR)/.test(codeOf(thrown)) ? "" : ` ${describeRow(table, row)}:`;
  return new SdsError("failed", `cannot write to ${folder}:${reason} ${messageOf(thrown)}`, { cause: thrown });
}
