import type { OrderStageStore } from "../port/order-stages.ts";
import type { Database } from "./database.ts";

/** Rows that are removed in one transaction, so that nobody waits for it. */
const ROWS_PER_STEP = 500;

export function orderStageStore(db: Database): OrderStageStore {
  return {
    async begin(shopId) {
      // The lock waits for a removal that is just beginning.
      const begun = await db.get<{ number: number }>(
        `INSERT INTO order_stages (shop_id, complete)
         SELECT id, false FROM (
           SELECT id FROM shops WHERE id = $1::bigint AND removal_started_at IS NULL FOR KEY SHARE
         ) AS served
         RETURNING number::float8 AS number`,
        [shopId],
      );
      return begun?.number;
    },

    async add(shopId, stage, orders, lines) {
      // One statement changes a row once: the last one of each counts.
      const lastOrders = [...new Map(orders.map((order) => [order.gid, order])).values()];
      const lastLines = [...new Map(lines.map((line) => [`${line.orderGid} ${line.gid}`, line])).values()];
      // The lock makes a removal of the stage wait, which removes the rows after it.
      const added = await db.all(
        `WITH stage AS (
           SELECT shop_id, number FROM order_stages WHERE shop_id = $1::bigint AND number = $2::bigint FOR KEY SHARE
         ), orders AS (
           INSERT INTO staged_orders (shop_id, stage, gid, json)
           SELECT stage.shop_id, stage.number, added.* FROM stage, unnest($3::text[], $4::text[]) AS added
           ON CONFLICT (shop_id, stage, gid) DO UPDATE SET json = excluded.json
         ), lines AS (
           INSERT INTO staged_order_lines (shop_id, stage, order_gid, gid, json)
           SELECT stage.shop_id, stage.number, added.* FROM stage, unnest($5::text[], $6::text[], $7::text[]) AS added
           ON CONFLICT (shop_id, stage, order_gid, gid) DO UPDATE SET json = excluded.json
         )
         SELECT 1 AS one FROM stage`,
        [
          shopId,
          stage,
          lastOrders.map(({ gid }) => gid),
          lastOrders.map(({ json }) => json),
          lastLines.map(({ orderGid }) => orderGid),
          lastLines.map(({ gid }) => gid),
          lastLines.map(({ json }) => json),
        ],
      );
      return added.length > 0;
    },

    async complete(shopId, stage) {
      const completed = await db.run(
        "UPDATE order_stages SET complete = true WHERE shop_id = $1::bigint AND number = $2::bigint",
        [shopId, stage],
      );
      return completed > 0;
    },

    async find(shopId, orderGid) {
      // One statement, so that a removal in between does not show an order without its lines. Longer numbers are
      // higher.
      const rows = await db.all<{ order: string; line: string | null }>(
        `SELECT staged_orders.json AS "order", staged_order_lines.json AS line FROM staged_orders
         LEFT JOIN staged_order_lines ON staged_order_lines.shop_id = staged_orders.shop_id
           AND staged_order_lines.stage = staged_orders.stage AND staged_order_lines.order_gid = staged_orders.gid
         WHERE staged_orders.shop_id = $1::bigint AND staged_orders.gid = $2::text
           AND staged_orders.stage = (SELECT max(number) FROM order_stages WHERE shop_id = $1::bigint AND complete)
         ORDER BY length(staged_order_lines.gid), staged_order_lines.gid`,
        [shopId, orderGid],
      );
      const [first] = rows;
      if (first === undefined) return undefined;
      return { order: first.order, lines: rows.flatMap(({ line }) => (line === null ? [] : [line])) };
    },

    async remove(shopId, before = Number.MAX_SAFE_INTEGER) {
      await db.run("DELETE FROM order_stages WHERE shop_id = $1::bigint AND number < $2::bigint", [shopId, before]);
      for (const [table, key] of [
        ["staged_order_lines", "stage, order_gid, gid"],
        ["staged_orders", "stage, gid"],
      ]) {
        const text = `DELETE FROM ${table} WHERE shop_id = $1::bigint AND (${key}) IN (
            SELECT ${key} FROM ${table} WHERE shop_id = $1::bigint AND stage < $2::bigint LIMIT ${ROWS_PER_STEP}
          )`;
        while ((await db.run(text, [shopId, before])) > 0);
      }
    },
  };
}
