import { SPAN_MS } from "../../domain/decide/commit.ts";
import type { Position } from "../../domain/pages/cursor.ts";
import { type RowFilter, STATUSES } from "../../domain/pages/row-filter.ts";
import { type ChangePage, MAX_PAGE_BYTES, type Snapshot } from "../port/pages.ts";

/** Returns the number of the first span that a reader can have missed. @param at when the reader last read all rows */
export function firstSpan(at: number): number {
  return Math.floor(at / SPAN_MS) - 1;
}

/** Maximum number of rows scanned for one page. The scan takes milliseconds and, on SQLite, blocks the program. */
export const SCANNED_ROWS = 5_000;
/** Maximum number of changes scanned for one page. Each change needs a look-up of its row. */
export const SCANNED_CHANGES = 1_000;

/** Which rows an engine reads for a filter: all rows, single rows by id or gid, or rows of a contract or customer. */
export type ScanPath = "all" | "id" | "orderGid" | "contractId" | "customerId";

/** Chooses the path with the fewest rows. @returns the path, and the value to search for */
export function scanOf(filter: RowFilter): { path: ScanPath; value: string } {
  const path = (["id", "orderGid", "contractId", "customerId"] as const).find((name) => filter[name] !== undefined);
  return path === undefined ? { path: "all", value: "" } : { path, value: filter[path] ?? "" };
}

/** Number of required texts: a row must contain all of them. The other wanted texts are statuses: one is enough. */
const REQUIRED_TEXTS = 3;
const STATUS_TEXTS = Math.max(...Object.values(STATUSES).map((values) => values.length));

/**
 * Returns the texts to look for in a row's JSON (`wantedCondition`). The number of texts is the same for every filter:
 * a missing part of the filter gives an empty text. No text can occur outside its own field, because quotes in strings
 * are escaped, and line items have other fields.
 */
export function wantedTexts({ id, orderGid, customerId, contractId, statuses }: RowFilter): (string | null)[] {
  const field = (name: string, value: string | undefined) => (value === undefined ? "" : `"${name}":"${value}"`);
  return [
    orderGid === undefined ? field("id", id) : field("shopifyId", orderGid),
    field("customerId", customerId),
    field("contractId", contractId),
    ...Array.from({ length: STATUS_TEXTS }, (_, index) =>
      // NULL matches no row. An empty text matches every row.
      statuses === undefined ? "" : statuses[index] === undefined ? null : field("status", statuses[index]),
    ),
  ];
}

/** Numbers of the parameters with the wanted texts. They are the same in every scan. */
export const WANTED_PARAMETERS = Array.from({ length: REQUIRED_TEXTS + STATUS_TEXTS }, (_, index) => index + 5);

/** Returns the SQL condition of wanted rows. @param contains returns the condition that a row has a parameter's text */
export function wantedCondition(contains: (parameter: number) => string): string {
  const all = WANTED_PARAMETERS.slice(0, REQUIRED_TEXTS).map(contains);
  const some = WANTED_PARAMETERS.slice(REQUIRED_TEXTS).map(contains);
  return `${all.join(" AND ")} AND (${some.join(" OR ")})`;
}

export interface ScannedRow extends Position {
  /**
   * JSON of a matching row. If a scan stops at its maximum number of rows, its last entry has null. This entry marks
   * the row at which the scan stopped. If that row matches, it also has an entry with its JSON.
   */
  json: string | null;
}

interface ScannedPage {
  rows: Uint8Array<ArrayBuffer>;
  /** The page's last row; null without rows. */
  last: Position | null;
  /** The next page begins after this row; null on the last page. */
  end: Position | null;
}

/** Makes a page of the first scanned rows that fit into it. */
export function pageOf(scanned: Iterable<ScannedRow>, limit: number): ScannedPage {
  const texts: string[] = [];
  let bytes = 0;
  let last: Position | null = null;
  const page = (end: Position | null) => ({ rows: new TextEncoder().encode(texts.join(",")), last, end });
  for (const { at, id, json } of scanned) {
    if (json === null) return page({ at, id });
    bytes += Buffer.byteLength(json) + 1;
    if (texts.length === limit || (texts.length > 0 && bytes > MAX_PAGE_BYTES)) return page(last);
    texts.push(json);
    last = { at, id };
  }
  return page(null);
}

/** Makes a page in the order of last changes. @param snapshot the snapshot that was scanned */
export function changePageOf(scanned: Iterable<ScannedRow>, limit: number, snapshot: Snapshot): ChangePage {
  const { rows, last, end } = pageOf(scanned, limit);
  return { rows, ...snapshot, reached: (end ?? last)?.at ?? snapshot.changeCount, hasMore: end !== null };
}
