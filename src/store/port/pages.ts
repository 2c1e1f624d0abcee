import type { Position } from "../../domain/pages/cursor.ts";
import type { NamedRow, RowFilter } from "../../domain/pages/row-filter.ts";
import { RESOURCES, type Resource } from "../../domain/resources.ts";
import type { Awaitable } from "../../lib/waits.ts";

/** Maximum of rows in a page. */
export const MAX_PAGE_ROWS = 250;
/** Maximum of bytes of a page's rows with their commas. A single row may be larger. */
export const MAX_PAGE_BYTES = 8 * 1024 * 1024;

/** Forms of rows: as they are stored, or subscriptions with `customFields` at their end. */
export const ROW_FORMS = [...RESOURCES, "subscriptionsWithFields"] as const;
export type RowForm = (typeof ROW_FORMS)[number];

/** Returns the resource of the rows. */
export function resourceOf(form: RowForm): Resource {
  return form === "subscriptionsWithFields" ? "subscriptions" : form;
}

interface Rows {
  /** The rows' JSON joined by commas: a part of a buffer that the caller may overwrite. */
  rows: Uint8Array<ArrayBuffer>;
  /** The number of the shop's last change, in the same snapshot as the rows. */
  changeCount: number;
}

export interface RowPage extends Rows {
  /** The next page begins after this row; null on the last page. */
  end: Position | null;
}

export interface ChangePage extends Rows {
  /** Change number up to which the page is complete: the number of its last row, or a later one. */
  reached: number;
  /** Whether changes follow that were not scanned. */
  hasMore: boolean;
}

export interface PageRow {
  json: string;
  changeCount: number;
}

/** A page ends before `limit` rows if the next row would exceed MAX_PAGE_BYTES. Its first row may have any size. */
export interface PageStore {
  /**
   * Returns a page of rows, newest first. Rows of one sort date are sorted by id, descending (docs/api.md,
   * "Pagination").
   * @param limit up to MAX_PAGE_ROWS
   * @param after the page begins after this row; null for the first page
   * @returns undefined if this shop and resource have no row `after`
   */
  list(shopId: number, form: RowForm, limit: number, after: Position | null): Awaitable<RowPage | undefined>;
  /**
   * Returns a page of matching rows, in the order of `list`. Scans a limited number of rows, so a next page may follow
   * even an empty page.
   * @returns undefined as for `list`
   */
  listFiltered(
    shopId: number,
    form: RowForm,
    filter: RowFilter,
    limit: number,
    after: Position | null,
  ): Awaitable<RowPage | undefined>;
  /**
   * Returns rows changed after a change, in the order of their last changes (docs/copies.md). Scans a limited number of
   * rows, as `listFiltered` does.
   * @param after a change number
   */
  changes(shopId: number, form: RowForm, filter: RowFilter, limit: number, after: number): Awaitable<ChangePage>;
  /** Returns the newest row with this id or gid; undefined without such a row. */
  find(shopId: number, form: RowForm, name: NamedRow): Awaitable<PageRow | undefined>;
  /**
   * Returns the number of a change at most a minute before a time, and never after it. Changes that a reader could not
   * see at that time have higher numbers. Only commits longer than SPAN_MS are an exception.
   * @param at epoch milliseconds
   */
  changeBefore(shopId: number, at: number): Awaitable<number>;
}
