import type { Position } from "../../domain/pages/cursor.ts";
import type { NamedRow, RowFilter } from "../../domain/pages/row-filter.ts";
import type { Resource } from "../../domain/resources.ts";
import type { Awaitable } from "../../lib/waits.ts";

/** The most rows of a page. */
export const MAX_PAGE_ROWS = 250;
/** The most bytes of a page's rows together with their commas, unless a single row is larger. */
export const MAX_PAGE_BYTES = 8 * 1024 * 1024;

interface Rows {
  /**
   * The rows' JSON joined by commas, ready to be sent. It is a part of a buffer that belongs to the caller, who may
   * overwrite the rest.
   */
  rows: Uint8Array<ArrayBuffer>;
  /** The number of the shop's last change, in the same snapshot as the rows. */
  changeCount: number;
}

export interface RowPage extends Rows {
  /** The next page begins after this row; null on the last page. */
  end: Position | null;
}

export interface ChangePage extends Rows {
  /** The change number up to which the page is complete: its last row's, or a later one. */
  reached: number;
  /** Whether unscanned changes follow. */
  hasMore: boolean;
}

export interface PageRow {
  json: string;
  changeCount: number;
}

/** A page ends before `limit` rows if the next row would exceed MAX_PAGE_BYTES. Its first row may have any size. */
export interface PageStore {
  /**
   * A page of rows, newest first; rows of one sort date by id, descending (docs/api.md, "Pagination").
   * @param limit up to MAX_PAGE_ROWS
   * @param after the page begins after this row; null for the first page
   * @returns undefined if this shop and resource have no row `after`
   */
  list(shopId: number, resource: Resource, limit: number, after: Position | null): Awaitable<RowPage | undefined>;
  /**
   * A page of matching rows, in the order of `list`. It scans a limited number of rows, so even an empty page may have
   * a next page.
   * @returns undefined as for `list`
   */
  listFiltered(
    shopId: number,
    resource: Resource,
    filter: RowFilter,
    limit: number,
    after: Position | null,
  ): Awaitable<RowPage | undefined>;
  /**
   * Rows changed after a change, in the order of their last changes (docs/copies.md). It scans a limited number of
   * them, as `listFiltered` does.
   * @param after a change number
   */
  changes(shopId: number, resource: Resource, filter: RowFilter, limit: number, after: number): Awaitable<ChangePage>;
  /** The newest row with that id or gid; undefined without one. */
  find(shopId: number, resource: Resource, name: NamedRow): Awaitable<PageRow | undefined>;
  /**
   * The number of a change at most a minute before a time, and never after it. What a reader could not see at that time
   * has a higher number, except commits longer than SPAN_MS.
   * @param at epoch milliseconds
   */
  changeBefore(shopId: number, at: number): Awaitable<number>;
}
