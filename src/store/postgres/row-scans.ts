import type { Position } from "../../domain/pages/cursor.ts";
import type { RowFilter } from "../../domain/pages/row-filter.ts";
import type { Resource } from "../../domain/resources.ts";
import { PAGE_SORT } from "../engine/page-cut.ts";
import {
  SCANNED_CHANGES,
  SCANNED_ROWS,
  type ScannedRow,
  type ScanPath,
  WANTED_PARAMETERS,
  wantedCondition,
  wantedTexts,
} from "../engine/row-scan.ts";
import { MAX_PAGE_BYTES, type RowForm, resourceOf, type Snapshot } from "../port/pages.ts";
import type { Queries } from "./database.ts";

/** Returns SQL that selects the columns of a `Snapshot`, for a statement that also reads rows. The shop is $1. */
export function snapshotOf(resource: Resource): string {
  return `(SELECT change_count FROM shop_changes WHERE shop_id = $1::bigint)::float8 AS "changeCount",
    (SELECT branch FROM shop_changes WHERE shop_id = $1::bigint) AS branch,
    coalesce(
      (SELECT max(number) FROM changes WHERE shop_id = $1::bigint AND resource = '${resource}'), 0
    )::float8 AS "lastChange"`;
}

/** Returns the `Snapshot` of a result row that has the columns of `snapshotOf`. */
export function snapshotIn(row: Partial<Snapshot> | undefined): Snapshot {
  const { changeCount = 0, lastChange = 0, branch = "" } = row ?? {};
  return { changeCount, lastChange, branch };
}

/** Parts of the statement of a scan. `rows` selects `at`, `id` and `json`. The shop is $1. */
interface ScanText {
  resource: Resource;
  rows: string;
  order: string;
  /** Maximum number of scanned rows. */
  scannedRows: number;
  /** SQL of the JSON to return for a matching row. The filter searches only the stored JSON. */
  shown: string;
}

/** Returns SQL of a subscription's JSON with its custom fields. The shop is $1. @param id SQL of the internal id */
export function rowWithFields(id: string): string {
  const start = "convert_from(substring(convert_to(json, 'UTF8') FROM 1 FOR octet_length(json) - 1), 'UTF8')";
  return `${start} || ',"customFields":' || coalesce(
    (SELECT fields.json FROM subscription_fields AS fields
     WHERE fields.shop_id = $1::bigint AND fields.id = ${id} LIMIT 1),
    '{}'
  ) || '}'`;
}

const COLUMNS: Record<ScanPath, string> = {
  all: "''",
  id: "id",
  orderGid: "gid",
  contractId: "contract_id",
  customerId: "customer_id",
};

/** Returns a scan in the order of a list. The scan reads the rows whose column for `path` has the value $4. */
export function listScan(form: RowForm, path: ScanPath): ScanText {
  const resource = resourceOf(form);
  const { sort } = PAGE_SORT[resource];
  return {
    resource,
    rows: `SELECT ${sort} AS at, id, json FROM ${resource}
      WHERE shop_id = $1::bigint AND (${sort}, id) < ($2::bigint, $3::text) AND ${COLUMNS[path]} = $4::text`,
    order: "at DESC, id DESC",
    scannedRows: SCANNED_ROWS,
    shown: shownJson(form),
  };
}

/** Returns the scan of rows in the order of their last changes. */
export function changeScan(form: RowForm): ScanText {
  const resource = resourceOf(form);
  return {
    resource,
    rows: `SELECT changes.number AS at, changes.id, json FROM changes
      CROSS JOIN LATERAL (
        SELECT json FROM ${resource} WHERE shop_id = changes.shop_id AND id = changes.id LIMIT 1
      ) AS row
      WHERE changes.shop_id = $1::bigint AND changes.resource = '${resource}' AND changes.number > $2::bigint
        AND $3::text = $4::text`,
    order: "at",
    scannedRows: SCANNED_CHANGES,
    shown: shownJson(form),
  };
}

function shownJson(form: RowForm): string {
  return form === "subscriptionsWithFields" ? rowWithFields("placed.id") : "json";
}

interface ScanRequest {
  shopId: number;
  /** The scan begins after this row. */
  behind: Position;
  /** Value to find in the searched column. */
  value: string;
  filter: RowFilter;
  limit: number;
}

interface ScanHit {
  rows: ScannedRow[];
  snapshot: Snapshot;
}

/** `place` is the row's position in the scan; null without rows. */
type ScanQueryRow = Position & { json: string | null; place: number | null } & Snapshot;

/** Reads matching rows. Reads the shop's change count in the same snapshot. */
export async function scan(
  queries: Queries,
  text: ScanText,
  { shopId, behind, value, filter, limit }: ScanRequest,
): Promise<ScanHit> {
  const parameters = [shopId, behind.at, behind.id, value, ...wantedTexts(filter), limit + 1];
  const found = await queries.all<ScanQueryRow>(scanText(text), parameters);
  const rows = found.filter(({ place }) => place !== null);
  const last = rows.at(-1);
  const isCut = last?.place === text.scannedRows;
  return {
    // If the last scanned row matches, it is listed twice: with its JSON, and as the end of the scan.
    rows: isCut && last.json !== null ? [...rows, { ...last, json: null }] : rows,
    snapshot: snapshotIn(found[0]),
  };
}

/**
 * Returns the statement of a scan. LIMIT has the same ORDER BY as the window. So the server reads rows one by one until
 * enough of them match. ORDER BY `place` would give the same order, but the server would read all rows first. The
 * result includes the first row that does not fit, because this row proves that more rows follow.
 */
function scanText({ resource, rows, order, scannedRows, shown }: ScanText): string {
  const isWanted = wantedCondition((parameter) => `strpos(json, $${parameter}::text) > 0`);
  const limit = `$${5 + WANTED_PARAMETERS.length}::bigint`;
  return `SELECT at::float8 AS at, id, json, place::int4 AS place, state.*
    FROM (SELECT ${snapshotOf(resource)}) AS state LEFT JOIN LATERAL (
      SELECT wanted.*, row_number() OVER (ORDER BY place) AS nth,
        sum(octet_length(json) + 1) OVER (ORDER BY place ROWS UNBOUNDED PRECEDING) AS bytes_to
      FROM (
        SELECT at, id, place, ${shown} AS json
        FROM (
          SELECT at, id, CASE WHEN ${isWanted} THEN json END AS json, row_number() OVER (ORDER BY ${order}) AS place
          FROM (${rows} ORDER BY ${order} LIMIT ${scannedRows}) AS scanned
        ) AS placed
        WHERE json IS NOT NULL OR place = ${scannedRows}
        ORDER BY ${order} LIMIT ${limit}
      ) AS wanted
    ) AS page ON json IS NULL OR nth <= 2 OR bytes_to - (octet_length(json) + 1) <= ${MAX_PAGE_BYTES}
    ORDER BY place`;
}

/** Whether a row exists with this id and sort date. */
export async function hasRow(queries: Queries, resource: Resource, shopId: number, at: Position): Promise<boolean> {
  const found = await queries.get(
    `SELECT 1 AS one FROM ${resource} WHERE shop_id = $1::bigint AND id = $2::text
     AND ${PAGE_SORT[resource].sort} = $3::bigint`,
    [shopId, at.id, at.at],
  );
  return found !== undefined;
}
