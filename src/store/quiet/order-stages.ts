import { sql as template } from "drizzle-orm";
import { nextTurn } from "../../lib/waits.ts";
import type { OrderStageStore, StagedLine, StagedOrder } from "../port/order-stages.ts";
import { lockFor, type QuietDatabase, sql, type TransactionWork, tableOf, tx } from "./quiet-database.ts";

/** Maximum number of rows that one transaction removes. It is low, so that the transaction is short. */
const ROWS_PER_STEP = 500;

export function orderStageStore(db: QuietDatabase): OrderStageStore {
  return {
    async begin(shopId) {
      // If a removal is marking the shop, this lock waits for the mark. Then the shop is not found.
      const begun = await db.get<{ number: number }>(
        sql`INSERT INTO order_stages (shop_id, complete)
          SELECT id, false FROM (
            SELECT id FROM shops WHERE id = ${shopId} AND removal_started_at IS NULL ${lockFor(db, "KEY SHARE")}
          ) AS served
          RETURNING number`,
      );
      return begun?.number;
    },

    add: (shopId, stage, orders, lines) => db.transaction(() => addRows(db, shopId, stage, orders, lines)),

    async complete(shopId, stage) {
      const completed = await db.run(
        sql`UPDATE order_stages SET complete = true WHERE shop_id = ${shopId} AND number = ${stage}`,
      );
      return completed > 0;
    },

    async find(shopId, orderGid) {
      // Reads order and lines in one statement. Between two statements, a removal of the stage could remove the lines.
      // A longer gid has a higher number, so lines are sorted by the length of their gids first.
      const rows = await db.all<{ order: string; line: string | null }>(
        sql`SELECT staged_orders.json AS "order", staged_order_lines.json AS line FROM staged_orders
          LEFT JOIN staged_order_lines ON staged_order_lines.shop_id = staged_orders.shop_id
            AND staged_order_lines.stage = staged_orders.stage AND staged_order_lines.order_gid = staged_orders.gid
          WHERE staged_orders.shop_id = ${shopId} AND staged_orders.gid = ${orderGid}
            AND staged_orders.stage = (SELECT max(number) FROM order_stages WHERE shop_id = ${shopId} AND complete)
          ORDER BY length(staged_order_lines.gid), staged_order_lines.gid`,
      );
      const [first] = rows;
      if (first === undefined) return undefined;
      return { order: first.order, lines: rows.flatMap(({ line }) => (line === null ? [] : [line])) };
    },

    async remove(shopId, before = Number.MAX_SAFE_INTEGER) {
      await db.run(sql`DELETE FROM order_stages WHERE shop_id = ${shopId} AND number < ${before}`);
      await removeRows(db, shopId, before, "staged_order_lines", "stage, order_gid, gid");
      await removeRows(db, shopId, before, "staged_orders", "stage, gid");
    },
  };
}

/** Adds orders and lines to a stage. @returns whether the stage exists */
function* addRows(
  db: QuietDatabase,
  shopId: number,
  stage: number,
  orders: readonly StagedOrder[],
  lines: readonly StagedLine[],
): TransactionWork<boolean> {
  // A removal of the stage waits for this lock. Then it also removes the rows added here.
  const isThere = yield* tx.get(
    sql`SELECT 1 AS one FROM order_stages WHERE shop_id = ${shopId} AND number = ${stage} ${lockFor(db, "KEY SHARE")}`,
  );
  if (isThere === undefined) return false;
  // A statement can change a row only once. So only the last order or line of each gid is written.
  const lastOrders = new Map(orders.map(({ gid, json }) => [gid, { gid, json }]));
  const lastLines = new Map(
    lines.map(({ orderGid, gid, json }) => [`${orderGid} ${gid}`, { order_gid: orderGid, gid, json }]),
  );
  const orderTable = tableOf(db, "added", { gid: "text", json: "text" }, [...lastOrders.values()]);
  yield* tx.run(
    sql`INSERT INTO staged_orders (shop_id, stage, gid, json)
      SELECT ${shopId}, ${stage}, gid, json FROM ${orderTable} WHERE true
      ON CONFLICT (shop_id, stage, gid) DO UPDATE SET json = excluded.json`,
  );
  const lineTable = tableOf(db, "added", { order_gid: "text", gid: "text", json: "text" }, [...lastLines.values()]);
  yield* tx.run(
    sql`INSERT INTO staged_order_lines (shop_id, stage, order_gid, gid, json)
      SELECT ${shopId}, ${stage}, order_gid, gid, json FROM ${lineTable} WHERE true
      ON CONFLICT (shop_id, stage, order_gid, gid) DO UPDATE SET json = excluded.json`,
  );
  return true;
}

/**
 * Removes a shop's rows of stages below `before`, in steps.
 * @param keyColumns columns of the table's key, without the shop
 */
async function removeRows(db: QuietDatabase, shopId: number, before: number, name: string, keyColumns: string) {
  const [table, key, limit] = [template.raw(name), template.raw(keyColumns), template.raw(String(ROWS_PER_STEP))];
  const step = sql`DELETE FROM ${table} WHERE shop_id = ${shopId} AND (${key}) IN (
      SELECT ${key} FROM ${table} WHERE shop_id = ${shopId} AND stage < ${before} LIMIT ${limit}
    )`;
  while ((await db.run(step)) > 0) await nextTurn();
}
