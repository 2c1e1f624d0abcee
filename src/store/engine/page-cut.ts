import type { Position } from "../../domain/pages/cursor.ts";
import type { Resource } from "../../domain/resources.ts";
import { MAX_PAGE_BYTES, MAX_PAGE_ROWS, type RowPage } from "../port/pages.ts";

/** Sort column of each resource, and the field of the JSON that holds the same date. */
export const PAGE_SORT = {
  subscriptions: { sort: "started_at", field: "startedAt" },
  customers: { sort: "created_at", field: "createdAt" },
  orders: { sort: "billed_at", field: "billedAt" },
} as const;

/** Every row is behind this position, so the first page needs no query of its own. */
export const BEFORE_ALL: Position = { at: Number.MAX_SAFE_INTEGER, id: "" };

/** A page of rows of this size, with the two more that are read, is within the bound whatever the limit. */
export const SMALL_ROW_BYTES = Math.floor(MAX_PAGE_BYTES / (MAX_PAGE_ROWS + 2)) - 1;

/**
 * A row's JSON begins with this, after the comma that joins it to the row before. It occurs nowhere inside a row:
 * quotes inside strings are escaped, and a line item begins with another key.
 */
const ROW_START = ',{"id":"';
const ID_START = '{"id":"'.length;
/** An internal id: three letters, an underscore, 24 characters. */
const ID_LENGTH = 28;
const DATE_LENGTH = "2026-01-31T00:00:00.000Z".length;

/** What an engine read for a page. */
export interface JoinedRows {
  /** The rows' JSON joined by commas; null for no rows. */
  bytes: Uint8Array<ArrayBuffer> | null;
  /** How many rows that are, and how many there would be if more followed. */
  count: number;
  wanted: number;
  /** The number of the shop's last change, read with the rows. */
  changeCount: number;
}

/** How many rows are read that do not belong to the page: the row of the cursor in front, and one behind. */
export function rowsAround(after: Position | null): number {
  return after === null ? 1 : 2;
}

/**
 * Cuts off what an engine read beside a page: the row that the cursor names, which shows that the cursor is valid, and
 * the row behind the page, which shows that more follow.
 * @returns undefined if the first row is not the cursor's
 */
export function cutPage(
  { bytes: joined, count, wanted, changeCount }: JoinedRows,
  resource: Resource,
  after: Position | null,
): RowPage | undefined {
  if (joined === null) return after === null ? { rows: new Uint8Array(), end: null, changeCount } : undefined;
  const dateStart = `"${PAGE_SORT[resource].field}":"`;
  const bytes = Buffer.from(joined.buffer, joined.byteOffset, joined.byteLength);
  let start = 0;
  if (after !== null) {
    const next = count === 1 ? bytes.length : bytes.indexOf(ROW_START);
    const first = positionOf(bytes.subarray(0, next), dateStart);
    if (first.id !== after.id || first.at !== after.at) return undefined;
    start = count === 1 ? next : next + 1;
  }
  if (count < wanted) return { rows: bytes.subarray(start), end: null, changeCount };
  const end = bytes.lastIndexOf(ROW_START);
  // The first row has no comma before it: lastIndexOf gives -1, and -1 + 1 is where it begins.
  const last = bytes.subarray(bytes.lastIndexOf(ROW_START, end - 1) + 1, end);
  return { rows: bytes.subarray(start, end), end: positionOf(last, dateStart), changeCount };
}

/**
 * The position of a row, without parsing it. The id is its first field. What begins the date occurs only once, because
 * quotes inside strings are escaped.
 */
function positionOf(row: Buffer, dateStart: string): Position {
  const date = row.lastIndexOf(dateStart) + dateStart.length;
  return {
    at: Date.parse(row.toString("latin1", date, date + DATE_LENGTH)),
    id: row.toString("latin1", ID_START, ID_START + ID_LENGTH),
  };
}
