import type { Database } from "bun:sqlite";
import type { Position } from "../../domain/cursor.ts";
import type { Resource } from "../../domain/resources.ts";
import { BEFORE_ALL, cutPage, PAGE_SORT, rowsAround, SMALL_ROW_BYTES } from "../page-cut.ts";
import { MAX_PAGE_BYTES, type PageStore } from "../pages.ts";

interface Joined {
  rows: Uint8Array<ArrayBuffer> | null;
  /** How many rows were read, and how many of them were joined. */
  n: number;
  joined: number;
}

type Bound = [shopId: number, at: number, id: string, read: number];

/**
 * SQLite joins a page's rows and returns bytes, so no row becomes a JavaScript object. What is read beside the page is
 * cut off (page-cut.ts).
 *
 * Nearly every page has small rows only, so it is surely within the bound of bytes. If a row is not small, a second
 * statement reads the sizes, and a third one joins as many rows as fit.
 */
export function pageStore(db: Database): PageStore {
  function prepare(resource: Resource) {
    const { sort } = PAGE_SORT[resource];
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

    /** @param cut how many of the rows that are read do not belong to the page */
    return (shopId: number, position: Position, read: number, cut: number): { read: number; found: Joined | null } => {
      const found = small.get(shopId, position.at, position.id, read);
      return found === null || found.joined === found.n ? { read, found } : joinFitting(shopId, position, read, cut);
    };
  }
  const statements = {
    subscriptions: prepare("subscriptions"),
    customers: prepare("customers"),
    orders: prepare("orders"),
  };

  return {
    isLater: false,

    async list(shopId, resource, limit, after) {
      const cut = rowsAround(after);
      const { read, found } = statements[resource](shopId, after ?? BEFORE_ALL, limit + cut, cut);
      return cutPage({ bytes: found?.rows ?? null, count: found?.n ?? 0, wanted: read }, resource, after);
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
