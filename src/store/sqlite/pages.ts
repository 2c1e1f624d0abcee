import type { Database } from "bun:sqlite";
import type { Position } from "../../domain/cursor.ts";
import type { Resource } from "../../domain/resources.ts";
import type { PageStore } from "../pages.ts";

/** Sort column of each resource, and the field of the JSON that holds the same date. */
export const PAGE_SORT = {
  subscriptions: { sort: "started_at", field: "startedAt" },
  customers: { sort: "created_at", field: "createdAt" },
  orders: { sort: "billed_at", field: "billedAt" },
} as const;

/** Every row is behind this position, so the first page needs no query of its own. */
const BEFORE_ALL: Position = { at: Number.MAX_SAFE_INTEGER, id: "" };

/**
 * A row's JSON begins with this, after the comma that joins it to the row before. It occurs nowhere inside a row:
 * quotes inside strings are escaped, and a line item begins with another key.
 */
const ROW_START = ',{"id":"';

/**
 * SQLite joins a page's rows and returns bytes, so no row becomes a JavaScript object. The statement reads two rows
 * more than the page gives: the row that the cursor names, which shows that the cursor is valid, and the row behind the
 * page, which shows that more follow. Both are cut off.
 */
export function pageStore(db: Database): PageStore {
  function prepare(resource: Resource) {
    const { sort, field } = PAGE_SORT[resource];
    const page = db.prepare<{ rows: Uint8Array<ArrayBuffer> | null; n: number }, [number, number, string, number]>(
      `SELECT CAST(group_concat(json, ',') AS BLOB) AS rows, count(*) AS n FROM (
        SELECT json FROM ${resource} WHERE shop_id = +? AND (${sort}, id) <= (?, ?) ORDER BY ${sort} DESC, id DESC
        LIMIT +?
      )`,
    );
    const positionOf = (row: Buffer): Position => {
      const { id, [field]: date } = JSON.parse(row.toString()) as { id: string } & Record<typeof field, string>;
      return { at: Date.parse(date), id };
    };
    return { page, positionOf };
  }
  const statements = {
    subscriptions: prepare("subscriptions"),
    customers: prepare("customers"),
    orders: prepare("orders"),
  };

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
      // The first row has no comma before it: lastIndexOf gives -1, and -1 + 1 is where it begins.
      const last = bytes.subarray(bytes.lastIndexOf(ROW_START, cut - 1) + 1, cut);
      return { rows: bytes.subarray(start, cut), end: positionOf(last) };
    },
  };
}
