import type { Database } from "bun:sqlite";
import type { Position } from "../../domain/cursor.ts";
import type { Resource } from "../../domain/resources.ts";
import { MAX_PAGE_BYTES, MAX_PAGE_ROWS, type PageStore } from "../pages.ts";

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
const ID_START = '{"id":"'.length;
/** An internal id: three letters, an underscore, 24 characters. */
const ID_LENGTH = 28;
const DATE_LENGTH = "2026-01-31T00:00:00.000Z".length;

/** A page of rows of this size, with the two more that are read, is within the bound whatever the limit. */
const SMALL_ROW_BYTES = Math.floor(MAX_PAGE_BYTES / (MAX_PAGE_ROWS + 2)) - 1;

interface Joined {
  rows: Uint8Array<ArrayBuffer> | null;
  /** How many rows were read, and how many of them were joined. */
  n: number;
  joined: number;
}

type Bound = [shopId: number, at: number, id: string, read: number];

/**
 * SQLite joins a page's rows and returns bytes, so no row becomes a JavaScript object. The statement reads two rows
 * more than the page gives: the row that the cursor names, which shows that the cursor is valid, and the row behind the
 * page, which shows that more follow. Both are cut off.
 *
 * Nearly every page has small rows only, so it is surely within the bound of bytes. If a row is not small, a second
 * statement reads the sizes, and a third one joins as many rows as fit.
 */
export function pageStore(db: Database): PageStore {
  function prepare(resource: Resource) {
    const { sort, field } = PAGE_SORT[resource];
    const range = `FROM ${resource} WHERE shop_id = +? AND (${sort}, id) <= (?, ?)
      ORDER BY ${sort} DESC, id DESC LIMIT +?`;
    const joining = (json: string) =>
      db.prepare<Joined, Bound>(
        `SELECT CAST(group_concat(json, ',') AS BLOB) AS rows, count(*) AS n, count(json) AS joined
         FROM (SELECT ${json} AS json ${range})`,
      );
    const small = joining(`iif(octet_length(json) <= ${SMALL_ROW_BYTES}, json, NULL)`);
    const whole = joining("json");
    const sizes = db.prepare<{ bytes: number }, Bound>(`SELECT octet_length(json) AS bytes ${range}`);

    const joinFitting = db.transaction((shopId: number, { at, id }: Position, read: number, cut: number) => {
      const fitting = countFitting(sizes.all(shopId, at, id, read).slice(cut - 1));
      const fewer = Math.min(read, fitting + cut);
      return { read: fewer, found: whole.get(shopId, at, id, fewer) };
    });

    return {
      /** @param cut how many of the rows that are read do not belong to the page: 1, or 2 with the cursor's row */
      join(shopId: number, position: Position, read: number, cut: number): { read: number; found: Joined | null } {
        const found = small.get(shopId, position.at, position.id, read);
        return found === null || found.joined === found.n ? { read, found } : joinFitting(shopId, position, read, cut);
      },
      dateStart: `"${field}":"`,
    };
  }
  const statements = {
    subscriptions: prepare("subscriptions"),
    customers: prepare("customers"),
    orders: prepare("orders"),
  };

  return {
    async list(shopId, resource, limit, after) {
      const { join, dateStart } = statements[resource];
      const cut = after === null ? 1 : 2;
      const { read, found } = join(shopId, after ?? BEFORE_ALL, limit + cut, cut);
      if (found === null || found.rows === null)
        return after === null ? { rows: new Uint8Array(), end: null } : undefined;
      const { rows, n } = found;
      const bytes = Buffer.from(rows.buffer, rows.byteOffset, rows.byteLength);
      let start = 0;
      if (after !== null) {
        const next = n === 1 ? bytes.length : bytes.indexOf(ROW_START);
        const first = positionOf(bytes.subarray(0, next), dateStart);
        if (first.id !== after.id || first.at !== after.at) return undefined;
        start = n === 1 ? next : next + 1;
      }
      if (n < read) return { rows: bytes.subarray(start), end: null };
      const end = bytes.lastIndexOf(ROW_START);
      // The first row has no comma before it: lastIndexOf gives -1, and -1 + 1 is where it begins.
      const last = bytes.subarray(bytes.lastIndexOf(ROW_START, end - 1) + 1, end);
      return { rows: bytes.subarray(start, end), end: positionOf(last, dateStart) };
    },
  };
}

/** How many rows from the first on are within the bound together, with a comma each. At least one. */
function countFitting(sizes: readonly { bytes: number }[]): number {
  let total = 0;
  const over = sizes.findIndex(({ bytes }) => {
    total += bytes + 1;
    return total > MAX_PAGE_BYTES;
  });
  return over === -1 ? sizes.length : Math.max(1, over);
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
