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
  /** Where the next page begins: behind this row. Null if nothing follows. */
  end: Position | null;
}

export interface ChangePage extends Rows {
  /** The number of the change up to which the page tells all: that of its last row, or a later one. */
  reached: number;
  /** Whether changes follow that were not looked at. */
  hasMore: boolean;
}

export interface StoredRow {
  json: string;
  changeCount: number;
}

/** Pages have fewer than `limit` rows where they would be larger than MAX_PAGE_BYTES, but at least one. */
export interface PageStore {
  /**
   * A page of rows, newest first; rows of one sort date by id, descending (docs/api.md, "Pagination").
   * @param limit up to MAX_PAGE_ROWS
   * @param after the page begins behind this row; null for the first page
   * @returns undefined if `after` is no row of this shop and resource
   */
  list(shopId: number, resource: Resource, limit: number, after: Position | null): Awaitable<RowPage | undefined>;
  /**
   * A page of the rows that a filter lets through, in the order of `list`. It looks at a limited number of rows, so it
   * can have few rows, or none, although more follow.
   * @returns undefined as `list`
   */
  listFiltered(
    shopId: number,
    resource: Resource,
    filter: RowFilter,
    limit: number,
    after: Position | null,
  ): Awaitable<RowPage | undefined>;
  /**
   * The rows that changed after a change, in the order of their last changes (docs/copies.md). It looks at a limited
   * number of them, as `listFiltered`.
   * @param after the number of the change
   */
  changes(shopId: number, resource: Resource, filter: RowFilter, limit: number, after: number): Awaitable<ChangePage>;
  /** The newest row of that name. undefined if the shop has none */
  find(shopId: number, resource: Resource, name: NamedRow): Awaitable<StoredRow | undefined>;
  /**
   * The number of a change before a time, at most a minute before it, and never after it: everything that a reader
   * could not see at that time comes later, but for commits that took longer than SPAN_MS.
   * @param at epoch milliseconds
   */
  changeBefore(shopId: number, at: number): Awaitable<number>;
}
