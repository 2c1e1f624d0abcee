import type { Position } from "../../domain/pages/cursor.ts";
import type { Resource } from "../../domain/resources.ts";
import { MAX_PAGE_BYTES, MAX_PAGE_ROWS, type RowPage, type Snapshot } from "../port/pages.ts";

/** Sort column of each resource, and the JSON field with the same date. */
export const PAGE_SORT = {
  subscriptions: { sort: "started_at", field: "startedAt" },
  customers: { sort: "created_at", field: "createdAt" },
  orders: { sort: "billed_at", field: "billedAt" },
} as const;

/** Position before all rows. A query for the rows after this position reads the first page. */
export const FIRST_POSITION: Position = { at: Number.MAX_SAFE_INTEGER, id: "" };

/** Maximum row size with which a full page and its two extra rows always fit into MAX_PAGE_BYTES. */
export const SMALL_ROW_BYTES = Math.floor(MAX_PAGE_BYTES / (MAX_PAGE_ROWS + 2)) - 1;

/**
 * The start of a row's JSON, with the comma before it. This text never occurs inside a row, because quotes in strings
 * are escaped, and line items begin with another key.
 */
const ROW_START = ',{"id":"';
const ID_START = '{"id":"'.length;
/** An internal id: three letters, an underscore, 24 characters. */
const ID_LENGTH = 28;
const DATE_LENGTH = "2026-01-31T00:00:00.000Z".length;

/** The result of the query for a page. */
export interface PageQueryRow extends Snapshot {
  rows: Uint8Array<ArrayBuffer> | null;
  /** Number of rows that the query read. */
  n: number;
  /** Number of rows in `rows`. */
  joined: number;
}

/** The result if the shop does not exist. */
export const NO_ROWS: PageQueryRow = { rows: null, n: 0, joined: 0, changeCount: 0, lastChange: 0 };

/** The rows that an engine read for a page, including the extra rows (`edgeRowCount`). */
export interface JoinedRows {
  /** The rows' JSON joined by commas; null without rows. */
  bytes: Uint8Array<ArrayBuffer> | null;
  /** Number of rows in `bytes`. */
  count: number;
  /** If `count` reaches this number, a next page follows. */
  wanted: number;
  snapshot: Snapshot;
}

/** Returns how many extra rows a query reads: the cursor's row before the page, and one row after the page. */
export function edgeRowCount(after: Position | null): number {
  return after === null ? 1 : 2;
}

/**
 * Cuts off the extra rows. The cursor's row proves that the cursor is valid. The row after the page proves that more
 * rows follow.
 * @returns undefined if the first row is not the cursor's
 */
export function cutPage(
  { bytes: joined, count, wanted, snapshot }: JoinedRows,
  resource: Resource,
  after: Position | null,
): RowPage | undefined {
  if (joined === null) return after === null ? { rows: new Uint8Array(), end: null, ...snapshot } : undefined;
  const dateStart = `"${PAGE_SORT[resource].field}":"`;
  const bytes = Buffer.from(joined.buffer, joined.byteOffset, joined.byteLength);
  let start = 0;
  if (after !== null) {
    const next = count === 1 ? bytes.length : bytes.indexOf(ROW_START);
    const first = positionOf(bytes.subarray(0, next), dateStart);
    if (first.id !== after.id || first.at !== after.at) return undefined;
    start = count === 1 ? next : next + 1;
  }
  if (count < wanted) return { rows: bytes.subarray(start), end: null, ...snapshot };
  const end = bytes.lastIndexOf(ROW_START);
  // No comma comes before the first row. If the page's last row is the first row, lastIndexOf returns -1, and the row
  // begins at -1 + 1.
  const last = bytes.subarray(bytes.lastIndexOf(ROW_START, end - 1) + 1, end);
  return { rows: bytes.subarray(start, end), end: positionOf(last, dateStart), ...snapshot };
}

/**
 * Reads the position of a row without parsing the row. The id is the first field. The sort field's name occurs once,
 * because quotes in strings are escaped.
 */
function positionOf(row: Buffer, dateStart: string): Position {
  const date = row.lastIndexOf(dateStart) + dateStart.length;
  return {
    at: Date.parse(row.toString("latin1", date, date + DATE_LENGTH)),
    id: row.toString("latin1", ID_START, ID_START + ID_LENGTH),
  };
}
