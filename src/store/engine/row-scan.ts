import { SPAN_MS } from "../../domain/decide/commit.ts";
import type { Position } from "../../domain/pages/cursor.ts";
import type { RowFilter } from "../../domain/pages/row-filter.ts";
import { type ChangePage, MAX_PAGE_BYTES } from "../port/pages.ts";

/** The first span of changes that a reader may have missed who has read everything at a time, epoch milliseconds. */
export function firstSpan(at: number): number {
  return Math.floor(at / SPAN_MS) - 1;
}

/** Rows that are looked at for one page. They take some milliseconds, in which a file engine does nothing else. */
export const SCANNED_ROWS = 5_000;
/** The same for changes, whose rows are found one by one. */
export const SCANNED_CHANGES = 1_000;

/**
 * Where an engine reads the rows that a filter may let through: all rows, few rows by their name, or those of a
 * contract or a customer.
 */
export type ScanPath = "all" | "id" | "orderGid" | "contractId" | "customerId";

/** The path with the fewest rows, and what they are found by. */
export function pathOf(filter: RowFilter): { path: ScanPath; value: string } {
  const path = (["id", "orderGid", "contractId", "customerId"] as const).find((name) => filter[name] !== undefined);
  return path === undefined ? { path: "all", value: "" } : { path, value: filter[path] ?? "" };
}

/**
 * What the JSON of a row contains if the filter lets it through: always four texts, empty where there is no filter.
 * They occur nowhere else in it, because quotes inside strings are escaped and line items have other fields.
 */
export function wantedTexts({ id, orderGid, customerId, contractId, status }: RowFilter): string[] {
  const field = (name: string, value: string | undefined) => (value === undefined ? "" : `"${name}":"${value}"`);
  return [
    orderGid === undefined ? field("id", id) : field("shopifyId", orderGid),
    field("customerId", customerId),
    field("contractId", contractId),
    field("status", status),
  ];
}

/** A row that was looked at. */
export interface ScannedRow extends Position {
  /** Null for the last row that was looked at, where more may follow. It can be there a second time. */
  json: string | null;
}

/** A page of scanned rows. */
interface ScannedPage {
  rows: Uint8Array<ArrayBuffer>;
  /** Its last row; null without rows. */
  last: Position | null;
  /** The row behind which the next page begins; null if nothing follows. */
  end: Position | null;
}

/** The first rows that fit into a page. */
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

/** A page of rows in the order of their last changes. @param changeCount in the snapshot of the scan */
export function changePageOf(scanned: Iterable<ScannedRow>, limit: number, changeCount: number): ChangePage {
  const { rows, last, end } = pageOf(scanned, limit);
  return { rows, changeCount, reached: (end ?? last)?.at ?? changeCount, hasMore: end !== null };
}
