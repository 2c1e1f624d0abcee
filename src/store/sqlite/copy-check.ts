import { constants, Database } from "bun:sqlite";
import { closeSync, fsyncSync, openSync, readSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { invalid, messageOf, SdsError } from "../../domain/error.ts";
import { checkVersion, migrate } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";

const HEADER = "SQLite format 3\0";
const READ_ONLY = constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI;
const NO_HEADER = "\0".repeat(HEADER.length);

/**
 * Checks the header of a file that should be a copy of our database.
 * @throws SdsError `invalid` for another file, `failed` for an unreadable file
 */
export function checkHeader(file: string): void {
  let header: string;
  try {
    header = headerOf(file);
  } catch (thrown) {
    throw new SdsError("failed", `cannot read ${file}: ${messageOf(thrown)}`, { cause: thrown });
  }
  if (header !== HEADER) throw invalid(`${file} is not a database`);
}

/** Whether a file may be from an interrupted copy. SQLite writes the header last, so the header may be missing. */
export function mayBeCopy(file: string): boolean {
  try {
    return [HEADER, NO_HEADER].includes(headerOf(file));
  } catch {
    return false;
  }
}

/** Reads the first bytes of a file, padded with zeros. */
function headerOf(file: string): string {
  const header = Buffer.alloc(HEADER.length);
  const fd = openSync(file, "r");
  try {
    readSync(fd, header, 0, header.length, 0);
  } finally {
    closeSync(fd);
  }
  return header.toString("latin1");
}

interface CheckedCopy {
  /** Fingerprint of the master key that sealed the copy's secrets; undefined without secrets. */
  sealedWith: string | undefined;
}

interface CheckOptions {
  /** Whether to compare the schema with ours. The triggers of a foreign file would run in this program. */
  compareSchema?: boolean;
}

/**
 * Checks a whole copy, and moves the copy's log into its file. No other process may use the copy.
 * @param name the file's name in messages
 * @throws SdsError `invalid` for a damaged file, `failed` for a database of another program or a newer sds
 */
export function checkCopy(path: string, name: string, { compareSchema = false }: CheckOptions = {}): CheckedCopy {
  let db: Database | undefined;
  try {
    db = new Database(path, { readwrite: true, create: false, strict: true });
    db.run("PRAGMA journal_mode = DELETE");
    return { sealedWith: sealedWith(db, checkContent(db, name, compareSchema)) };
  } catch (thrown) {
    throw damageOf(name, thrown);
  } finally {
    db?.close(true);
  }
}

/** What a backup holds. */
export interface BackupContent {
  schema: number;
  shops: number;
  subscriptions: number;
  bytes: number;
}

/**
 * Reads a whole backup. Writes nothing, not even beside the file, so the disk may be read-only.
 * @throws SdsError `invalid` for a damaged file, or a file that is not a backup; `failed` for a backup of a newer sds
 */
export function verifyBackup(file: string): BackupContent {
  checkHeader(file);
  let db: Database | undefined;
  try {
    // Nobody writes to a backup, so it needs no lock. To lock it, SQLite would write beside the file.
    db = new Database(`${pathToFileURL(resolve(file)).href}?immutable=1`, READ_ONLY);
    const schema = checkContent(db, file, true);
    const count = (table: string) => db?.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0;
    return { schema, shops: count("shops"), subscriptions: count("subscriptions"), bytes: statSync(file).size };
  } catch (thrown) {
    throw damageOf(file, thrown);
  } finally {
    db?.close(true);
  }
}

/** Checks the tables and pages. @returns the schema's version. @throws SdsError; Error for a damaged page */
function checkContent(db: Database, name: string, compareSchema: boolean): number {
  const version = checkVersion(db, name);
  if (version === 0) throw invalid(`${name} is empty, so it is not a backup`);
  const difference = compareSchema ? findDifference(db, version) : undefined;
  if (difference !== undefined) throw invalid(`${name} is not a copy that sds made: it ${difference}`);
  const problem = db.query<{ integrity_check: string }, []>("PRAGMA integrity_check(1)").get()?.integrity_check;
  if (problem !== "ok") throw new Error(problem);
  return version;
}

function damageOf(name: string, thrown: unknown): SdsError {
  return thrown instanceof SdsError ? thrown : invalid(`${name} is damaged: ${messageOf(thrown)}`, thrown);
}

interface SchemaEntry {
  type: string;
  name: string;
  table: string;
  sql: string | null;
}

/** Tables that SQLite and Litestream add. A restore accepts them, because a table without triggers runs no code. */
const ADDED_TABLES = /^(sqlite_|_litestream_)/;

/** Compares a database with the schema of its version. @returns the first difference, for messages */
function findDifference(db: Database, version: number): string | undefined {
  using made = new Database(":memory:", { strict: true });
  migrate(made, { now: () => 0, random: (bytes) => new Uint8Array(bytes) }, MIGRATIONS.slice(0, version));
  const [expected, actual] = [schemaOf(made), schemaOf(db)];
  const describe = ({ type, name }: SchemaEntry) => `the ${type} ${name}`;
  for (const [key, entry] of actual)
    if (!expected.has(key)) return `has ${describe(entry)}, which schema ${version} does not have`;
  for (const [key, entry] of expected) {
    const found = actual.get(key);
    if (found === undefined) return `lacks ${describe(entry)} of schema ${version}`;
    if (found.sql !== entry.sql || found.table !== entry.table)
      return `has ${describe(entry)}, which differs from schema ${version}`;
  }
  return undefined;
}

function schemaOf(db: Database): Map<string, SchemaEntry> {
  const entries = db.query<SchemaEntry, []>("SELECT type, name, tbl_name AS 'table', sql FROM sqlite_schema").all();
  const ours = entries.filter(({ type, name }) => type !== "table" || !ADDED_TABLES.test(name));
  return new Map(ours.map((entry) => [`${entry.type} ${entry.name}`, entry]));
}

/** Reads the fingerprint. Before schema 5 the table was called `facts`. */
function sealedWith(db: Database, version: number): string | undefined {
  const table = version < 5 ? "facts" : "meta";
  return db.query<{ value: string }, []>(`SELECT value FROM ${table} WHERE name = 'master_key'`).get()?.value;
}

/** Syncs a file. Closing the file releases SQLite's locks, so this process must have no connection to the file. */
export function syncFile(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
