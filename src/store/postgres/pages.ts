import type { Position } from "../../domain/pages/cursor.ts";
import {
  cutPage,
  edgeRowCount,
  FIRST_POSITION,
  NO_ROWS,
  PAGE_SORT,
  type PageQueryRow,
  SMALL_ROW_BYTES,
} from "../engine/page-cut.ts";
import { changePageOf, firstSpan, pageOf, scanOf } from "../engine/row-scan.ts";
import { MAX_PAGE_BYTES, type PageRow, type PageStore, ROW_FORMS, type RowForm, resourceOf } from "../port/pages.ts";
import type { Database } from "./database.ts";
import { changeScan, hasRow, listScan, rowWithFields, scan, snapshotIn, snapshotOf } from "./row-scans.ts";

/** The result of the query for a page with large rows. */
interface CutPageRow extends Omit<PageQueryRow, "n"> {
  /** Number of rows that fit into the page, without the cursor's row. */
  fitting: number;
}

const STATEMENTS = Object.fromEntries(ROW_FORMS.map((each) => [each, statementsOf(each)])) as Record<
  RowForm,
  ReturnType<typeof statementsOf>
>;

/**
 * Reads pages. The server joins a page's rows to one text, so no row becomes a JavaScript object. page-cut.ts removes
 * the extra rows before and after the page. Nearly all pages have only small rows, and stay within MAX_PAGE_BYTES. If a
 * row is large, a second statement joins as many rows as fit.
 */
export function pageStore(db: Database): PageStore {
  return {
    async list(shopId, form, limit, after) {
      const { small, fitting } = STATEMENTS[form];
      const resource = resourceOf(form);
      const { at, id } = after ?? FIRST_POSITION;
      const cut = edgeRowCount(after);
      const wanted = limit + cut;
      const found = await db.get<PageQueryRow>(small, [shopId, at, id, wanted]);
      const { rows: bytes, n: count, joined } = found ?? NO_ROWS;
      if (joined === count) return cutPage({ bytes, count, wanted, snapshot: snapshotIn(found) }, resource, after);
      const fits = await db.get<CutPageRow>(fitting, [shopId, at, id, wanted, cut]);
      const fewer = Math.min(wanted, (fits?.fitting ?? 0) + cut);
      return cutPage(
        {
          bytes: fits?.rows ?? null,
          count: fits?.joined ?? 0,
          wanted: fewer,
          snapshot: snapshotIn(fits),
        },
        resource,
        after,
      );
    },

    async listFiltered(shopId, form, filter, limit, after) {
      if (after !== null && !(await hasRow(db, resourceOf(form), shopId, after))) return undefined;
      const { path, value } = scanOf(filter);
      const behind = after ?? FIRST_POSITION;
      const found = await scan(db, listScan(form, path), { shopId, behind, value, filter, limit });
      const { rows, end } = pageOf(found.rows, limit);
      return { rows, end, ...found.snapshot };
    },

    async changes(shopId, form, filter, limit, after) {
      const behind: Position = { at: after, id: "" };
      const found = await scan(db, changeScan(form), { shopId, behind, value: "", filter, limit });
      return changePageOf(found.rows, limit, found.snapshot);
    },

    async find(shopId, form, { id, orderGid }) {
      const { byId, byGid } = STATEMENTS[form];
      return db.get<PageRow>(id === undefined ? byGid : byId, [shopId, id ?? orderGid ?? ""]);
    },

    async changeBefore(shopId, at) {
      const found = await db.get<{ number: number }>(
        `SELECT coalesce(
           (SELECT number FROM change_spans WHERE shop_id = $1::bigint AND span >= $2::bigint
            ORDER BY span LIMIT 1),
           noted_count
         )::float8 AS number FROM shop_changes WHERE shop_id = $1::bigint`,
        [shopId, firstSpan(at)],
      );
      return found?.number ?? 0;
    },
  };
}

function statementsOf(form: RowForm) {
  const resource = resourceOf(form);
  const { sort } = PAGE_SORT[resource];
  const json = form === resource ? "json" : rowWithFields("subscriptions.id");
  const stored = `FROM ${resource} WHERE shop_id = $1::bigint AND (${sort}, id) <= ($2::bigint, $3::text)
    ORDER BY ${sort} DESC, id DESC LIMIT $4::bigint`;
  const range = form === resource ? stored : `FROM (SELECT ${sort}, id, ${json} AS json ${stored}) AS stored`;
  const joining = `convert_to(string_agg(json, ','), 'UTF8') AS rows, count(json)::int4 AS joined,
    ${snapshotOf(resource)}`;
  const one = (condition: string) =>
    `SELECT ${json} AS json, ${snapshotOf(resource)} FROM ${resource}
     WHERE shop_id = $1::bigint AND ${condition} = $2::text
     ORDER BY ${sort} DESC, ${resource}.id DESC LIMIT 1`;
  return {
    small: `SELECT ${joining}, count(*)::int4 AS n
      FROM (SELECT CASE WHEN octet_length(json) <= ${SMALL_ROW_BYTES} THEN json END AS json ${range}) AS page`,
    // The page's first row always fits, whatever its size. The query also returns the first row that does not fit,
    // because this row proves that more rows follow.
    fitting: `SELECT ${joining}, (count(*) FILTER (
        WHERE place >= $5::int4 AND (place = $5::int4 OR bytes_to <= ${MAX_PAGE_BYTES})
      ))::int4 AS fitting
      FROM (
        SELECT json, place, sum(size) FILTER (WHERE place >= $5::int4) OVER (ORDER BY place) AS bytes_to, size
        FROM (
          SELECT json, octet_length(json) + 1 AS size, row_number() OVER (ORDER BY ${sort} DESC, id DESC) AS place
          ${range}
        ) AS placed
      ) AS sized
      WHERE place <= $5::int4 + 1 OR bytes_to - size <= ${MAX_PAGE_BYTES}`,
    byId: one("id"),
    // Only orders have the column `gid`. Several orders may share a gid.
    byGid: one(resource === "orders" ? "gid" : "NULL"),
  };
}
