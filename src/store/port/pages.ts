import type { Position } from "../../domain/pages/cursor.ts";
import type { NamedRow, RowFilter } from "../../domain/pages/row-filter.ts";
import { RESOURCES, type Resource } from "../../domain/resources.ts";
import type { Awaitable } from "../../lib/waits.ts";

/** Maximum number of rows in a page. */
export const MAX_PAGE_ROWS = 250;
/** Maximum size of a page's rows with their commas, in bytes. A single row may be larger. */
export const MAX_PAGE_BYTES = 8 * 1024 * 1024;

/** The forms in which rows are read: as stored, or subscriptions with `customFields` added at the end. */
export const ROW_FORMS = [...RESOURCES, "subscriptionsWithFields"] as const;
export type RowForm = (typeof ROW_FORMS)[number];

/** Returns the resource of a form's rows. */
export function resourceOf(form: RowForm): Resource {
  return form === "subscriptionsWithFields" ? "subscriptions" : form;
}

/** Identifies the state of a shop's rows. Two servers with the same change count and branch have the same rows. */
export interface ChangeState {
  /** The number of the shop's last change. */
  changeCount: number;
  /** The branch of the shop's changes. */
  branch: string;
}

/** Which state of a shop was read. */
export interface Snapshot {
  /** The number of the shop's last change, in the same snapshot as the rows. */
  changeCount: number;
  /** The branch of the shop's last change. Only an engine with standbys returns the branch. */
  branch?: string;
  /** The number of the resource's last change, in the same snapshot; 0 without rows. */
  lastChange: number;
  /** JSON array of the keys of custom fields that the rows leave out; undefined if they leave out no fields. */
  hiddenKeys?: string;
}

interface Rows extends Snapshot {
  /** The rows' JSON joined by commas. The caller may overwrite the whole buffer of these bytes. */
  rows: Uint8Array<ArrayBuffer>;
}

export interface RowPage extends Rows {
  /** The next page begins after this row; null on the last page. */
  end: Position | null;
}

export interface ChangePage extends Rows {
  /** The page covers all changes up to this number, which can be higher than the last row's change number. */
  reached: number;
  /** Whether the scan stopped before the last change. */
  hasMore: boolean;
}

export interface PageRow extends Snapshot {
  json: string;
}

/** Reads pages. A page ends before a row that would exceed MAX_PAGE_BYTES, unless that row is the page's first. */
export interface PageStore {
  /**
   * Returns a page of rows, newest first. Rows with the same sort date are sorted by id, descending (docs/api.md,
   * "Pagination").
   * @param limit up to MAX_PAGE_ROWS
   * @param after the row before the page; null for the first page
   * @returns undefined if the shop has no row `after` of this resource
   */
  list(shopId: number, form: RowForm, limit: number, after: Position | null): Awaitable<RowPage | undefined>;
  /**
   * Returns a page of matching rows, in the order of `list`. Scans a limited number of rows, so a next page can follow
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
   * Returns the rows whose last change has a number above `after`, in the order of these changes (docs/copies.md).
   * Scans a limited number of rows, as `listFiltered` does.
   */
  changes(shopId: number, form: RowForm, filter: RowFilter, limit: number, after: number): Awaitable<ChangePage>;
  /** Returns the newest row with this id or gid; undefined without such a row. */
  find(shopId: number, form: RowForm, name: NamedRow): Awaitable<PageRow | undefined>;
  /**
   * Returns the number of the change after which a reader continues. The reader read all rows at `at`, but may have
   * missed earlier commits that became visible late. So the number is the shop's change count at a moment one to two
   * spans (SPAN_MS) before `at`. The reader can still miss a commit that becomes visible more than a span late.
   * @param at epoch milliseconds
   */
  changeBefore(shopId: number, at: number): Awaitable<number>;
}
