import type { Database } from "bun:sqlite";
import type { Position } from "../../domain/pages/cursor.ts";
import type { Resource } from "../../domain/resources.ts";
import { PAGE_SORT } from "../engine/page-cut.ts";
import {
  SCANNED_CHANGES,
  SCANNED_ROWS,
  type ScannedRow,
  type ScanPath,
  WANTED_PARAMETERS,
  wantedCondition,
} from "../engine/row-scan.ts";
import { type RowForm, resourceOf } from "../port/pages.ts";

/** Tables that list rows by customer or contract. Columns: `shop_id`, the customer or contract, the sort date, `id`. */
const LINKS: Partial<Record<ScanPath, { column: string; tables: Partial<Record<Resource, string>> }>> = {
  customerId: {
    column: "customer_id",
    tables: { subscriptions: "customer_subscriptions", orders: "customer_orders" },
  },
  contractId: { column: "contract_id", tables: { orders: "contract_orders" } },
};

/** Parameters of a scan: the shop, the row before the scan, the value to find, and the texts that rows must contain. */
type ScanParameters = [shopId: number, at: number, id: string, value: string, ...wanted: (string | null)[]];

/** Reads rows in the order of the scan, in the caller's transaction. The row `after` need not exist. */
type Scan = (
  shopId: number,
  after: Position,
  value: string,
  wanted: readonly (string | null)[],
) => Iterable<ScannedRow>;

/** Makes the scans of the mirror's rows, each at its first use. */
export function rowScans(db: Database) {
  const scans = new Map<string, Scan>();
  function named(name: string, make: () => Scan | undefined): Scan {
    const scan = scans.get(name) ?? make();
    if (scan === undefined) throw new Error(`there is no scan of ${name}`);
    scans.set(name, scan);
    return scan;
  }
  return {
    inListOrder: (form: RowForm, path: ScanPath): Scan => named(`${form} ${path}`, () => listScan(db, form, path)),
    byChange: (form: RowForm): Scan => named(`${form} changes`, () => changeScan(db, form)),
  };
}

/** Makes a scan in the order of a list. Returns undefined for a path that the resource does not have. */
function listScan(db: Database, form: RowForm, path: ScanPath): Scan | undefined {
  const resource = resourceOf(form);
  const { sort } = PAGE_SORT[resource];
  const behind = (table: string) => `(${table}.${sort}, ${table}.id) < (?2, ?3)`;
  const order = (table: string) => `ORDER BY ${table}.${sort} DESC, ${table}.id DESC`;
  const own = (condition: string, index = "") =>
    scanOf(
      db,
      `${resource}.${sort} AS at, ${resource}.id, json FROM ${resource} ${index}
       WHERE ${resource}.shop_id = +?1 AND ${condition} AND ${behind(resource)} ${order(resource)}`,
      { shown: shownJson(form, "at") },
    );
  if (path === "all") return own("?4 = ''");
  if (path === "id") return own(`${resource}.id = +?4`, `INDEXED BY ${resource}_by_id`);
  if (path === "orderGid")
    return resource === "orders"
      ? own("json_extract(json, '$.shopifyId') = +?4", "INDEXED BY orders_by_gid")
      : undefined;
  const { column, tables } = LINKS[path] ?? { tables: {} };
  const table = tables[resource];
  if (table === undefined) return undefined;
  const same = ["shop_id", sort, "id"].map((each) => `${resource}.${each} = link.${each}`).join(" AND ");
  return scanOf(
    db,
    `link.${sort} AS at, link.id, json FROM ${table} AS link CROSS JOIN ${resource} ON ${same}
     WHERE link.shop_id = +?1 AND link.${column} = +?4 AND ${behind("link")} ${order("link")}`,
    { shown: shownJson(form, "at") },
  );
}

/** Makes a scan in the order of the last changes. */
function changeScan(db: Database, form: RowForm): Scan {
  const resource = resourceOf(form);
  const startedAt = form === resource ? "" : "started_at,";
  const range = `WHERE link.shop_id = +?1 AND link.resource = '${resource}' AND link.number > ?2 AND ?3 = ?4
    ORDER BY link.number`;
  return scanOf(
    db,
    `link.number AS at, link.id, ${startedAt} json FROM changes AS link
     CROSS JOIN ${resource} INDEXED BY ${resource}_by_id
       ON ${resource}.id = link.id AND ${resource}.shop_id = link.shop_id
     ${range}`,
    {
      scannedRows: SCANNED_CHANGES,
      positions: `link.number AS at, link.id FROM changes AS link ${range}`,
      shown: shownJson(form, "started_at"),
    },
  );
}

function shownJson(form: RowForm, startedAt: string): string {
  return form === "subscriptionsWithFields" ? rowWithFields("scanned", startedAt) : "json";
}

/**
 * Returns SQL of a subscription's JSON with its custom fields at the end. The shop is ?1.
 * @param table name of the table with the subscription's `json` and `id`
 * @param startedAt name of that table's column with the sort date
 */
export function rowWithFields(table: string, startedAt = "started_at"): string {
  return withFields(
    `(SELECT fields.json FROM subscription_fields AS fields
      WHERE fields.shop_id = +?1 AND fields.started_at = ${table}.${startedAt} AND fields.id = ${table}.id)`,
  );
}

/**
 * Returns SQL of a subscription's JSON with these custom fields at the end. Converts the JSON to a BLOB to cut off the
 * last brace. To cut off the brace of a text, SQLite would count characters and read the text twice.
 * @param fields SQL of the custom fields' JSON, which may be NULL
 */
export function withFields(fields: string): string {
  const start = "substr(CAST(json AS BLOB), 1, octet_length(json) - 1)";
  return `concat(${start}, ',"customFields":', coalesce(${fields}, '{}'), '}')`;
}

/**
 * Makes a scan.
 * @param rows the rows to scan: SQL after SELECT, without a limit
 * @param positions like `rows`, but without the JSON
 * @param shown SQL of the JSON to return for a matching row. The filter searches the stored JSON, not this JSON. This
 *   JSON may also have custom fields, and a custom field may be named like a field that can be filtered.
 */
function scanOf(
  db: Database,
  rows: string,
  { scannedRows = SCANNED_ROWS, positions = rows, shown = "json" } = {},
): Scan {
  const wanted = wantedCondition((parameter) => `instr(json, ?${parameter}) > 0`);
  const bindAll = WANTED_PARAMETERS.map((parameter) => `?${parameter}`).join(", ");
  // The inner LIMIT keeps SQLite from merging both queries. So SQLite examines the rows one after the other, in their
  // order.
  const matching = db.prepare<Position & { json: string }, ScanParameters>(
    `SELECT at, id, ${shown} AS json FROM (SELECT ${rows} LIMIT ${scannedRows}) AS scanned WHERE ${wanted}`,
  );
  const lastScanned = db.prepare<Position, ScanParameters>(
    `SELECT at, id FROM (SELECT ${positions} LIMIT 1 OFFSET ${scannedRows - 1})
     WHERE length(concat(${bindAll})) >= 0`,
  );
  return function* scan(shopId, { at, id }, value, texts) {
    const bound: ScanParameters = [shopId, at, id, value, ...texts];
    yield* matching.iterate(...bound);
    const last = lastScanned.get(...bound);
    if (last !== null) yield { ...last, json: null };
  };
}
