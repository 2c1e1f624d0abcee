import type { Database } from "bun:sqlite";
import type { Position } from "../../domain/cursor.ts";
import type { Resource } from "../../domain/resources.ts";

interface Page {
  /** The rows' JSON joined by commas, ready to be sent: a part of a buffer that is the caller's, with what else was read before and behind it. */
  rows: Uint8Array<ArrayBuffer>;
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
 * SQLite joins a page's rows, and hands over bytes: no row becomes a JavaScript object on its way out. Two more are asked for than the
 * page gives: the one that the cursor names comes first, and shows that the cursor is good; the one behind the page tells that another
 * follows. Both are cut off.
 */
export function pageStore(db: Database): PageStore {
  function prepare(resource: Resource) {
    const { sort, field } = TABLES[resource];
    const page = db.prepare<{ rows: Uint8Array<ArrayBuffer> | null; n: number }, [number, number, string, number]>(
      `SELECT CAST(group_concat(json, ',') AS BLOB) AS rows, count(*) AS n FROM (
        SELECT json FROM ${resource} WHERE shop_id = +? AND (${sort}, id) <= (?, ?) ORDER BY ${sort} DESC, id DESC LIMIT +?
      )`,
    );
    const positionOf = (row: Buffer): Position => {
      const { id, [field]: date } = JSON.parse(row.toString()) as { id: string } & Record<typeof field, string>;
      return { at: Date.parse(date), id };
    };
    return { page, positionOf };
  }
  const statements = { subscriptions: prepare("subscriptions"), customers: prepare("customers"), orders: prepare("orders") };

  return {
    async list(shopId, resource, limit, after) {
      const { page, positionOf } = statements[resource];
      const { at, id } = after ?? BEFORE_ALL;
      const most = after === null ? limit : limit + 1;
      const { rows, n } = page.get(shopId, at, id, most + 1) ?? { rows: null, n: 0 };
      if (rows === null) return after === null ? { rows: new Uint8Array(), end: null } : undefined;
      const bytes = Buffer.from(rows.buffer, rows.byteOffset, rows.byteLength);
      let start = 0;
      if (after !== null) {
        const next = n === 1 ? bytes.length : bytes.indexOf(ROW_START);
        const first = positionOf(bytes.subarray(0, next));
        if (first.id !== id || first.at !== at) return undefined;
        start = n === 1 ? next : next + 1;
      }
      if (n <= most) return { rows: bytes.subarray(start), end: null };
      const cut = bytes.lastIndexOf(ROW_START);
      // No comma before the first row: -1 + 1 is its place too.
      const last = bytes.subarray(bytes.lastIndexOf(ROW_START, cut - 1) + 1, cut);
      return { rows: bytes.subarray(start, cut), end: positionOf(last) };
    },
  };
}
