import type { Database } from "bun:sqlite";
import { nextTurn } from "../../lib/turns.ts";
import type { OrderStageStore } from "../port/order-stages.ts";

/** Rows that are removed in one transaction, so that nobody waits for it. */
const ROWS_PER_STEP = 500;

export function orderStageStore(db: Database): OrderStageStore {
  const begin = db.prepare<{ number: number }, [number]>(
    `INSERT INTO order_stages (shop_id, complete) SELECT id, 0 FROM shops WHERE id = ? AND removal_started_at IS NULL
     RETURNING number`,
  );
  const isThere = db.prepare<unknown, [number, number]>("SELECT 1 FROM order_stages WHERE shop_id = ? AND number = ?");
  const addOrder = db.prepare(
    `INSERT INTO staged_orders (shop_id, stage, gid, json) VALUES (?, ?, ?, ?)
     ON CONFLICT (shop_id, stage, gid) DO UPDATE SET json = excluded.json`,
  );
  const addLine = db.prepare(
    `INSERT INTO staged_order_lines (shop_id, stage, order_gid, gid, json) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (shop_id, stage, order_gid, gid) DO UPDATE SET json = excluded.json`,
  );
  const complete = db.prepare("UPDATE order_stages SET complete = 1 WHERE shop_id = ? AND number = ?");
  // One statement, so that a removal in between does not show an order without its lines. Longer numbers are higher.
  const find = db.prepare<{ order: string; line: string | null }, [number, string]>(
    `SELECT staged_orders.json AS "order", staged_order_lines.json AS line FROM staged_orders
     LEFT JOIN staged_order_lines ON staged_order_lines.shop_id = staged_orders.shop_id
       AND staged_order_lines.stage = staged_orders.stage AND staged_order_lines.order_gid = staged_orders.gid
     WHERE staged_orders.shop_id = +?1 AND staged_orders.gid = +?2
       AND staged_orders.stage = (SELECT max(number) FROM order_stages WHERE shop_id = +?1 AND complete = 1)
     ORDER BY length(staged_order_lines.gid), staged_order_lines.gid`,
  );
  const forget = db.prepare("DELETE FROM order_stages WHERE shop_id = ? AND number < ?");
  const removeSome = ["staged_order_lines", "staged_orders"].map((table) => prepareRemoval(db, table));

  return {
    async begin(shopId) {
      return begin.get(shopId)?.number;
    },

    async add(shopId, stage, orders, lines) {
      return db
        .transaction(() => {
          if (isThere.get(shopId, stage) === null) return false;
          for (const { gid, json } of orders) addOrder.run(shopId, stage, gid, json);
          for (const { orderGid, gid, json } of lines) addLine.run(shopId, stage, orderGid, gid, json);
          return true;
        })
        .immediate();
    },

    async complete(shopId, stage) {
      return complete.run(shopId, stage).changes > 0;
    },

    async find(shopId, orderGid) {
      const rows = find.all(shopId, orderGid);
      const [first] = rows;
      if (first === undefined) return undefined;
      return { order: first.order, lines: rows.flatMap(({ line }) => (line === null ? [] : [line])) };
    },

    async remove(shopId, before = Number.MAX_SAFE_INTEGER) {
      forget.run(shopId, before);
      for (const remove of removeSome) {
        while (remove(shopId, before) > 0) await nextTurn();
      }
    },
  };
}

function prepareRemoval(db: Database, table: string): (shopId: number, before: number) => number {
  const key = table === "staged_orders" ? "stage, gid" : "stage, order_gid, gid";
  const remove = db.prepare<unknown, [number, number]>(
    `DELETE FROM ${table} WHERE shop_id = ?1 AND (${key}) IN (
       SELECT ${key} FROM ${table} WHERE shop_id = ?1 AND stage < ?2 LIMIT ${ROWS_PER_STEP}
     )`,
  );
  return (shopId, before) => remove.run(shopId, before).changes;
}
