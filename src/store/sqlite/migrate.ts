import type { Database } from "bun:sqlite";
import { SdsError } from "../../domain/error.ts";
import { RESOURCES, type Resource } from "../../domain/resources.ts";
import { PAGE_SORT } from "../engine/page-cut.ts";
import type { UpgradeOptions } from "./left-over-bodies.ts";
import { MIGRATIONS, type Migration, type SqliteRow } from "./migrations.ts";

/** "sds1" as a number. As application_id it marks the databases of this program. */
const APPLICATION_ID = 0x73647331;

/**
 * Checks a database before any write: it must be ours, and not from a newer program.
 * @returns its schema version; 0 without tables
 * @throws SdsError `failed`
 */
export function checkVersion(db: Database, path: string): number {
  const version = schemaVersion(db);
  const application = pragma(db, "application_id");
  const tables = db.query<{ n: number }, []>("SELECT count(*) AS n FROM sqlite_schema").get()?.n ?? 0;
  if (application !== APPLICATION_ID && tables > 0)
    throw new SdsError("failed", `${path} is a database of another program`);
  if (version > MIGRATIONS.length) {
    throw new SdsError(
      "failed",
      `${path} was written by a newer sds (schema ${version}, this one knows ${MIGRATIONS.length}): ` +
        "install that version or a later one; nothing was changed",
    );
  }
  return version;
}

/** Reads the schema version of any database; 0 without tables. */
export function schemaVersion(db: Database): number {
  return pragma(db, "user_version");
}

/** @throws SdsError `unavailable` if a newer program has upgraded the schema since this one opened the database */
export function checkVersionStays(db: Database): void {
  const version = pragma(db, "user_version");
  if (version <= MIGRATIONS.length) return;
  throw new SdsError(
    "unavailable",
    `The database was upgraded by a newer sds (schema ${version}, this one knows ${MIGRATIONS.length}): ` +
      "stop this program and start that version.",
  );
}

/** Upgrades the schema in one transaction. Several programs may try at once. */
export function migrate(db: Database, options: UpgradeOptions, migrations: readonly Migration[] = MIGRATIONS): void {
  if (pragma(db, "user_version") === migrations.length) return;
  db.transaction(() => {
    const missing = migrations.slice(pragma(db, "user_version"));
    for (const { sql, render = {} } of missing) {
      if (sql !== "") db.run(sql);
      for (const resource of RESOURCES) {
        const renderRow = render[resource];
        if (renderRow !== undefined) renderRows(db, resource, renderRow);
      }
    }
    for (const { finish } of missing) finish?.(db, options);
    db.run(`PRAGMA application_id = ${APPLICATION_ID}`);
    db.run(`PRAGMA user_version = ${migrations.length}`);
  }).immediate();
}

const BATCH = 1_000;

interface RowText {
  shopId: number;
  at: number;
  id: string;
  json: string;
}

/**
 * Renders all rows of a table again. If the JSON of a row changes, the row gets its shop's next change number, so that
 * readers of changes see the row.
 */
function renderRows(db: Database, table: Resource, renderRow: (row: SqliteRow) => SqliteRow): void {
  const { sort } = PAGE_SORT[table];
  // This is the order of the primary key. In any other order, each batch would sort the whole table.
  const next = db.prepare<RowText, [number, number, string]>(
    `SELECT shop_id AS shopId, ${sort} AS at, id, json FROM ${table}
     WHERE (shop_id, ${sort}, id) > (?, ?, ?) ORDER BY shop_id, ${sort}, id LIMIT ${BATCH}`,
  );
  const nextNumber = db.prepare<{ number: number }, [number]>(
    "UPDATE shops SET change_count = change_count + 1 WHERE id = ? RETURNING change_count AS number",
  );
  const write = db.prepare(`UPDATE ${table} SET json = ?, change_number = ? WHERE shop_id = ? AND id = ?`);
  let last = { shopId: 0, at: 0, id: "" };
  for (
    let rows = next.all(last.shopId, last.at, last.id);
    rows.length > 0;
    rows = next.all(last.shopId, last.at, last.id)
  ) {
    for (const { shopId, at, id, json } of rows) {
      const rendered = JSON.stringify(renderRow(JSON.parse(json) as SqliteRow));
      if (rendered !== json) write.run(rendered, nextNumber.get(shopId)?.number ?? 0, shopId, id);
      last = { shopId, at, id };
    }
  }
}

function pragma(db: Database, name: "user_version" | "application_id"): number {
  return db.query<Record<string, number>, []>(`PRAGMA ${name}`).get()?.[name] ?? 0;
}
