import { constants, Database } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { codeOf, messageOf, SdsError } from "../../domain/error.ts";
import { hasFolder } from "../files/data-folder.ts";
import type { NotedServe, OpenedCheckup, StoreProblem } from "../port/checkup.ts";
import { shopCheckup } from "../quiet/shop-checkup.ts";
import { databasePath, hasDatabase, noData, restoredPath, unfinishedPath } from "./data-files.ts";
import { sealedWith } from "./database.ts";
import { checkVersion, schemaVersion } from "./migrate.ts";
import { MIGRATIONS } from "./migrations.ts";
import { quietDatabase } from "./quiet-database.ts";
import { figuresOf } from "./sqlite-store.ts";

const BUSY_TIMEOUT_MS = 1_000;

/** Opens a folder's database only for reading. Changes nothing in the folder, whether `serve` runs or not. */
export function openSqliteCheckup(folder: string): OpenedCheckup {
  let db: Database | undefined;
  let version = 0;
  try {
    if (!hasFolder(folder) || !hasDatabase(folder)) return { problem: "missing", detail: noData(folder).message };
    const path = databasePath(folder);
    if (existsSync(unfinishedPath(path))) return { problem: "unfinished", detail: `${folder} has an unfinished copy` };
    if (existsSync(restoredPath(path))) return { problem: "unfinished", detail: `${folder} has an unfinished restore` };
    db = openForReading(path);
    version = schemaVersion(db);
    checkVersion(db, path);
    return checkupOf(db, path);
  } catch (thrown) {
    db?.close();
    const problem = version > MIGRATIONS.length ? "newer" : problemOf(thrown);
    const detail = thrown instanceof SdsError ? thrown.message : `the database in ${folder}: ${messageOf(thrown)}`;
    return { problem, detail };
  }
}

function problemOf(thrown: unknown): StoreProblem {
  return /^SQLITE_(CORRUPT|NOTADB|IOERR_SHORT_READ)/.test(codeOf(thrown)) ? "damaged" : "unusable";
}

/**
 * Searches the whole database for damage. Blocks this process meanwhile.
 * @returns the first damage; undefined for an undamaged database
 */
export function findDamage(folder: string): string | undefined {
  let db: Database | undefined;
  try {
    db = openForReading(databasePath(folder));
    const found = db.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get()?.quick_check;
    return found === "ok" ? undefined : found;
  } catch (thrown) {
    return messageOf(thrown);
  } finally {
    db?.close();
  }
}

/**
 * Opens a database for reading, so that SQLite neither creates nor changes a file. If a log exists, another process may
 * be writing. SQLite then reads the log's index too. Without a log, no other process uses the database.
 */
function openForReading(path: string): Database {
  const log = statSync(`${path}-wal`, { throwIfNoEntry: false });
  // If this process runs as root, SQLite would give the log to the owner of the database.
  if (log !== undefined && log.uid !== statSync(path).uid)
    throw new SdsError("failed", `the log of ${path} belongs to another user than the database`);
  const hasIndex = existsSync(`${path}-shm`);
  if (log !== undefined && log.size > 0 && !hasIndex)
    throw new SdsError("failed", `${path} has a log without its index ${path}-shm, so a check would have to write`);
  const mode = log !== undefined && hasIndex ? "readonly_shm=1" : "immutable=1";
  const uri = `file:${path.split("/").map(encodeURIComponent).join("/")}?mode=ro&${mode}`;
  const db = new Database(uri, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
  db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  return db;
}

function checkupOf(db: Database, path: string): OpenedCheckup {
  const version = schemaVersion(db);
  const isCurrent = version === MIGRATIONS.length;
  const replicas = db.query("SELECT 1 FROM sqlite_schema WHERE name = '_litestream_seq'").get();
  return {
    checkup: {
      schema: { version, isCurrent },
      sealedWith: isCurrent ? sealedWith(db) : undefined,
      isReplicated: replicas !== null,
      figures: async () => figuresOf(db, path),
      serves: async () => notedServes(db),
      clock: async () => null,
      unsafeSettings: async () => [],
      shops: shopCheckup(quietDatabase(db)),
      close: async () => db.close(),
    },
  };
}

function notedServes(db: Database): NotedServe[] {
  const metaOf = (name: string) =>
    db.query<{ value: string }, [string]>("SELECT value FROM meta WHERE name = ?").get(name)?.value;
  const [address, processId] = [metaOf("address"), metaOf("process")];
  return address === undefined ? [] : [{ address, processId: processId === undefined ? null : Number(processId) }];
}
