import type { Position } from "../domain/cursor.ts";
import type { Resource } from "../domain/resources.ts";

/** The most rows of a page. */
export const MAX_PAGE_ROWS = 250;
/** The most bytes of a page's rows together with their commas, unless a single row is larger. */
export const MAX_PAGE_BYTES = 8 * 1024 * 1024;

export interface RowPage {
  /**
   * The rows' JSON joined by commas, ready to be sent. It is a part of a buffer that belongs to the caller, who may
   * overwrite the rest.
   */
  rows: Uint8Array<ArrayBuffer>;
  /** The position of the last row; null if nothing follows. */
  end: Position | null;
}

export interface PageStore {
  /** Whether a page comes in a later turn of the event loop than the call. */
  isLater: boolean;
  /**
   * A page of rows, newest first; rows of one sort date by id, descending (docs/api.md, "Pagination").
   * It has fewer than `limit` rows where they would be larger than MAX_PAGE_BYTES, but at least one.
   * @param limit up to MAX_PAGE_ROWS
   * @param after the page begins behind this row; null for the first page
   * @returns undefined if `after` is no row of this shop and resource
   */
  list(shopId: number, resource: Resource, limit: number, after: Position | null): Promise<RowPage | undefined>;
}
