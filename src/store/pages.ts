import type { Database } from "bun:sqlite";
import type { Position } from "../domain/cursor.ts";
import type { Resource } from "../domain/resources.ts";

interface Page {
  /** The rows' JSON joined by commas, ready to be sent. */
  rows: Uint8Array;
  /** Where the page ended, or null if nothing follows. */
  end: Position | null;
}

export interface PageStore {
  /**
   * A page in the order of service.md's "Pagination rules": newest first, rows of one date by id, descending.
   * @param after the page begins behind this row; null for the first page
   * @returns undefined where `after` names no row of this shop and resource
   */
  list(shopId: number, resource: Resource, limit: number, after: Position | null): Promise<Page | undefined>;
}

/** Table and sort column of each resource; the sort date is the JSON's field too. */
const TABLES = {
  subscriptions: { sort: "started_at", field: "startedAt" },
  customers: { sort: "created_at", field: "createdAt" },
  orders: { sort: "billed_at", field: "billedAt" },
} as const;

/** No position is behind these, so the first page is a page like any other. */
const BEFORE_ALL: Position = { at: Number.MAX_SAFE_INTEGER, id: "" };

/**
 * How a row's JSON begins, behind the comma that joins it. Nothing inside a row reads like it: in a string the quotes would be
 * escaped, and a line item begins with another key.
 */
const ROW_START = ',{"id":"';

/**
 * SQLite joins a page's rows and one more, and hands over bytes: no row becomes a JavaScript object on its way out. The one
 * more tells that another page follows, and is cut off.
 */
export function pageStore(db: Database): PageStore {
  function prepare(resource: Resource) {
    const { sort, field } = TABLES[resource];
    const page = db.prepare<{ rows: Uint8Array | null; n: number }, [number, number, string, number]>(
      `SELECT CAST(group_concat(json, ',') AS BLOB) AS rows, count(*) AS n FROM (
        SELECT json FROM ${resource} WHERE shop_id = +? AND (${sort}, id) < (?, ?) ORDER BY ${sort} DESC, id DESC LIMIT +?
      )`,
    );
    const exists = db.prepare<{ 1: number }, [number, number, string]>(`SELECT 1 FROM ${resource} WHERE shop_id = ? AND ${sort} = ? AND id = ?`);
    return { page, exists, field };
  }
  const statements = { subscriptions: prepare("subscriptions"), customers: prepare("customers"), orders: prepare("orders") };

  return {
    async list(shopId, resource, limit, after) {
      const { page, exists, field } = statements[resource];
      if (after !== null && exists.get(shopId, after.at, after.id) === null) return undefined;
      const { at, id } = after ?? BEFORE_ALL;
      const found = page.get(shopId, at, id, limit + 1);
      const rows = found?.rows ?? new Uint8Array();
      if (found === null || found.n <= limit) return { rows, end: null };
      const bytes = Buffer.from(rows.buffer, rows.byteOffset, rows.byteLength);
      const cut = bytes.lastIndexOf(ROW_START);
      // No comma before the first row: -1 + 1 is its place too.
      const lastRow = bytes.subarray(bytes.lastIndexOf(ROW_START, cut - 1) + 1, cut);
      const last = JSON.parse(lastRow.toString()) as { id: string } & Record<typeof field, string>;
      return { rows: bytes.subarray(0, cut), end: { at: Date.parse(last[field]), id: last.id } };
    },
  };
}
