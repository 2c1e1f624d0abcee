import type { Database } from "bun:sqlite";
import type { Position } from "../../domain/pages/cursor.ts";
import type { Resource } from "../../domain/resources.ts";
import {
  cutPage,
  edgeRowCount,
  FIRST_POSITION,
  NO_ROWS,
  PAGE_SORT,
  type PageQueryRow,
  SMALL_ROW_BYTES,
} from "../engine/page-cut.ts";
import { changePageOf, firstSpan, pageOf, scanOf, wantedTexts } from "../engine/row-scan.ts";
import {
  MAX_PAGE_BYTES,
  type PageRow,
  type PageStore,
  type RowForm,
  resourceOf,
  type Snapshot,
} from "../port/pages.ts";
import { rowScans, rowWithFields, withFields } from "./row-scans.ts";

type PageParameters = [shopId: number, at: number, id: string, read: number];

/** Returns SQL of the columns of a snapshot. The shop is ?1. */
function snapshotOf(resource: Resource): string {
  return `(SELECT change_count FROM shops WHERE id = +?1) AS changeCount,
    coalesce((SELECT max(number) FROM changes WHERE shop_id = +?1 AND resource = '${resource}'), 0) AS lastChange`;
}

/**
 * Reads pages. SQLite joins a page's rows and returns bytes, so no row becomes a JavaScript object. page-cut.ts removes
 * the extra rows before and after the page.
 *
 * Nearly every page has only small rows, so it stays within MAX_PAGE_BYTES. If a row is large, a second statement reads
 * the sizes of the rows. Then a third statement joins as many rows as fit.
 */
function joinedPages(db: Database, form: RowForm) {
  const texts = form === "subscriptionsWithFields" ? textsWithFields() : textsOf(form);
  const small = db.prepare<PageQueryRow, PageParameters>(texts.small);
  const whole = db.prepare<PageQueryRow, PageParameters>(texts.whole);
  const sizes = db.prepare<{ bytes: number }, PageParameters>(texts.sizes);

  const joinFitting = db.transaction((shopId: number, { at, id }: Position, read: number, cut: number) => {
    const fitting = countFitting(sizes.all(shopId, at, id, read).slice(cut - 1));
    const fewer = Math.min(read, fitting + cut);
    return { read: fewer, found: whole.get(shopId, at, id, fewer) };
  });

  /** @param read number of rows to read, including the extra rows @param cut number of extra rows */
  return (
    shopId: number,
    position: Position,
    read: number,
    cut: number,
  ): { read: number; found: PageQueryRow | null } => {
    const found = small.get(shopId, position.at, position.id, read);
    return found === null || found.joined === found.n ? { read, found } : joinFitting(shopId, position, read, cut);
  };
}

/** SQL of the statements of a page: `small` leaves large rows out, `whole` does not. */
interface PageTexts {
  small: string;
  whole: string;
  sizes: string;
}

function textsOf(resource: Resource): PageTexts {
  const { sort } = PAGE_SORT[resource];
  const range = `FROM ${resource} WHERE shop_id = +?1 AND (${sort}, id) <= (?2, ?3)
    ORDER BY ${sort} DESC, id DESC LIMIT +?4`;
  const joining = (json: string) =>
    `SELECT CAST(group_concat(json, ',') AS BLOB) AS rows, count(*) AS n, count(json) AS joined,
       ${snapshotOf(resource)}
     FROM (SELECT ${json} AS json ${range})`;
  return {
    small: joining(`iif(octet_length(json) <= ${SMALL_ROW_BYTES}, json, NULL)`),
    whole: joining("json"),
    sizes: `SELECT octet_length(json) AS bytes ${range}`,
  };
}

/**
 * Returns the statements for subscriptions with their custom fields. A join reads the fields, and `group_concat` builds
 * the rows. If a subquery looked up the fields and built the rows, SQLite would evaluate the subquery for each
 * aggregate. These statements take 0.65 of the time of such a subquery.
 */
function textsWithFields(): PageTexts {
  const range = `FROM (
      SELECT subscriptions.json, fields.json AS fields FROM subscriptions
      LEFT JOIN subscription_fields AS fields ON fields.shop_id = subscriptions.shop_id
        AND fields.started_at = subscriptions.started_at AND fields.id = subscriptions.id
      WHERE subscriptions.shop_id = +?1 AND (subscriptions.started_at, subscriptions.id) <= (?2, ?3)
      ORDER BY subscriptions.started_at DESC, subscriptions.id DESC LIMIT +?4
    )`;
  const row = withFields("fields");
  const size = `octet_length(json) + coalesce(octet_length(fields), 2) + ${',"customFields":'.length}`;
  const joining = (json: string, isJoined: string) =>
    `SELECT CAST(group_concat(${json}, ',') AS BLOB) AS rows, count(*) AS n, count(${isJoined}) AS joined,
       ${snapshotOf("subscriptions")} ${range}`;
  const ifSmall = (value: string) => `iif(${size} <= ${SMALL_ROW_BYTES}, ${value}, NULL)`;
  return {
    small: joining(ifSmall(row), ifSmall("1")),
    whole: joining(row, "*"),
    sizes: `SELECT ${size} AS bytes ${range}`,
  };
}

/** Makes look-ups of single rows. */
function ownRows(db: Database, form: RowForm) {
  const resource = resourceOf(form);
  const json = form === resource ? "json" : rowWithFields("subscriptions");
  const has = db.prepare<{ 1: number }, [number, number, string]>(
    `SELECT 1 FROM ${resource} WHERE shop_id = ? AND ${PAGE_SORT[resource].sort} = ? AND id = ?`,
  );
  const byId = db.prepare<PageRow, [number, string]>(
    `SELECT ${json} AS json, ${snapshotOf(resource)} FROM ${resource} INDEXED BY ${resource}_by_id
     WHERE id = ?2 AND shop_id = +?1`,
  );
  return {
    has: (shopId: number, { at, id }: Position): boolean => has.get(shopId, at, id) !== null,
    byId: (shopId: number, id: string): PageRow | undefined => byId.get(shopId, id) ?? undefined,
  };
}

export function pageStore(db: Database): PageStore {
  const joined = perForm((form) => joinedPages(db, form));
  const own = perForm((form) => ownRows(db, form));
  const scans = rowScans(db);
  const snapshots = perForm((form) => db.prepare<Snapshot, [number]>(`SELECT ${snapshotOf(resourceOf(form))}`));
  const beforeSpan = db.prepare<{ number: number }, [number, number]>(
    `SELECT coalesce(
       (SELECT number FROM change_spans WHERE shop_id = +?1 AND span >= ?2 ORDER BY span LIMIT 1),
       iif(change_span = 0, 0, change_count)
     ) AS number FROM shops WHERE id = +?1`,
  );
  const snapshotIn = (shopId: number, form: RowForm): Snapshot => snapshots(form).get(shopId) ?? NO_ROWS;
  /** Returns the JSON of the newest order with a gid. */
  function newestOf(shopId: number, orderGid: string): string | undefined {
    const scan = scans.inListOrder("orders", "orderGid");
    const [newest] = scan(shopId, FIRST_POSITION, orderGid, wantedTexts({ orderGid }));
    return newest?.json ?? undefined;
  }
  const transaction = db.transaction((read: () => unknown) => read());
  const inSnapshot = <T>(read: () => T): T => transaction(read) as T;

  return {
    list(shopId, form, limit, after) {
      const cut = edgeRowCount(after);
      const { read, found } = joined(form)(shopId, after ?? FIRST_POSITION, limit + cut, cut);
      const { rows: bytes, n: count, changeCount, lastChange } = found ?? NO_ROWS;
      const snapshot = { changeCount, lastChange };
      return cutPage({ bytes, count, wanted: read, snapshot }, resourceOf(form), after);
    },

    listFiltered(shopId, form, filter, limit, after) {
      return inSnapshot(() => {
        if (after !== null && !own(form).has(shopId, after)) return undefined;
        const { path, value } = scanOf(filter);
        const scanned = scans.inListOrder(form, path)(shopId, after ?? FIRST_POSITION, value, wantedTexts(filter));
        const { rows, end } = pageOf(scanned, limit);
        return { rows, end, ...snapshotIn(shopId, form) };
      });
    },

    changes(shopId, form, filter, limit, after) {
      return inSnapshot(() => {
        const snapshot = snapshotIn(shopId, form);
        const scanned = scans.byChange(form)(shopId, { at: after, id: "" }, "", wantedTexts(filter));
        // Skips the scan if nothing has changed. That is the case for most readers.
        return changePageOf(after >= snapshot.lastChange ? [] : scanned, limit, snapshot);
      });
    },

    find(shopId, form, { id, orderGid = "" }) {
      if (id !== undefined) return own(form).byId(shopId, id);
      return inSnapshot(() => {
        const json = newestOf(shopId, orderGid);
        return json === undefined ? undefined : { json, ...snapshotIn(shopId, form) };
      });
    },

    changeBefore(shopId, at) {
      return beforeSpan.get(shopId, firstSpan(at))?.number ?? 0;
    },
  };
}

/** Makes a value for each form of rows at its first use, because a command needs few of the statements. */
function perForm<T>(make: (form: RowForm) => T): (form: RowForm) => T {
  const made = new Map<RowForm, T>();
  return (form) => {
    const known = made.get(form);
    if (known !== undefined) return known;
    const value = make(form);
    made.set(form, value);
    return value;
  };
}

/** Returns how many of the first rows fit into a page, each with a comma. The first row always fits. */
function countFitting(sizes: readonly { bytes: number }[]): number {
  let total = 0;
  const over = sizes.findIndex(({ bytes }) => {
    total += bytes + 1;
    return total > MAX_PAGE_BYTES;
  });
  return over === -1 ? sizes.length : Math.max(1, over);
}
