import { REMOVAL_TOPIC, type ShopRef } from "../../domain/shop.ts";
import { BYTES_PER_STEP, EMPTIED_AT_ONCE, type LargeTable, NO_ROWS, ROWS_PER_STEP } from "../engine/removal-tables.ts";
import type { ShopRemoval } from "../port/shops.ts";
import type { Database, Queries } from "./database.ts";

/** Tables with up to millions of rows of a shop. */
const LARGE_TABLES: LargeTable[] = [
  { name: "attempts", key: "delivery, number", text: "coalesce(answer, '')" },
  { name: "deliveries", key: "number", text: "body" },
  { name: "staged_order_lines", key: "stage, order_gid, gid", text: "json" },
  { name: "staged_orders", key: "stage, gid", text: "json" },
  { name: "orders", key: "id", text: "json" },
  { name: "subscriptions", key: "id", text: "json" },
  { name: "customers", key: "id", text: "json" },
  { name: "occurrences", key: "type, id", text: "json" },
  { name: "contract_reads", key: "contract", text: "orders" },
  { name: "change_spans", key: "span", text: "''" },
  { name: "inbox", key: "number", text: "body", keptRows: `topic = '${REMOVAL_TOPIC}'` },
  {
    name: "platform_webhooks",
    key: "id",
    text: "id",
    // Ids have no topic. An id and its inbox item are stored in one transaction, with the same time.
    keptRows: `received_at IN (
      SELECT received_at FROM inbox WHERE shop_id = $1::bigint AND topic = '${REMOVAL_TOPIC}'
    )`,
  },
];

/** Removes shops: first the mark, then large tables in steps, then the shop's row. */
export function shopRemoval(db: Database): ShopRemoval {
  return {
    async beginRemoval(domain, now) {
      return db.transaction(async (tx) => {
        // Waits for transactions that add rows to the shop. Later ones wait for the mark.
        const shop = await tx.get<ShopRef & { isRemoving: boolean }>(
          `SELECT id::float8 AS id, domain, removal_started_at IS NOT NULL AS "isRemoving" FROM shops
           WHERE domain = $1::text FOR UPDATE`,
          [domain],
        );
        if (shop === undefined) return undefined;
        const { id, isRemoving } = shop;
        if (!isRemoving) {
          await tx.run("UPDATE shops SET removal_started_at = $2::bigint WHERE id = $1::bigint", [id, now]);
          for (const table of EMPTIED_AT_ONCE) await tx.run(`DELETE FROM ${table} WHERE shop_id = $1::bigint`, [id]);
        }
        return { id, domain };
      });
    },

    async removing() {
      return db.all<ShopRef>(
        `SELECT id::float8 AS id, domain FROM shops WHERE removal_started_at IS NOT NULL
         ORDER BY removal_started_at, shops.id`,
      );
    },

    async removeSome(shopId) {
      return db.transaction(async (tx) => {
        const isMarked = await tx.get(
          "SELECT 1 AS one FROM shops WHERE id = $1::bigint AND removal_started_at IS NOT NULL FOR UPDATE",
          [shopId],
        );
        if (isMarked === undefined) return false;
        for (const table of LARGE_TABLES) if ((await removeStep(tx, table, shopId)) > 0) return true;
        // The removal's request and its id. Foreign keys remove the rest.
        await tx.run("DELETE FROM platform_webhooks WHERE shop_id = $1::bigint", [shopId]);
        await tx.run("DELETE FROM inbox WHERE shop_id = $1::bigint", [shopId]);
        await tx.run("DELETE FROM shops WHERE id = $1::bigint", [shopId]);
        return false;
      });
    },
  };
}

/** Removes some rows of a shop. @returns their number; 0 at the end */
function removeStep(tx: Queries, { name, key, text, keptRows = NO_ROWS }: LargeTable, shopId: number): Promise<number> {
  return tx.run(
    `DELETE FROM ${name} WHERE shop_id = $1::bigint AND (${key}) IN (
       SELECT ${key} FROM (
         SELECT ${key}, sum(size) OVER (ORDER BY ${key} ROWS UNBOUNDED PRECEDING) - size AS bytes_before FROM (
           SELECT ${key}, octet_length(${text}) AS size FROM ${name}
           WHERE shop_id = $1::bigint AND NOT (${keptRows}) ORDER BY ${key} LIMIT ${ROWS_PER_STEP}
         ) AS rows_of_step
       ) AS sized WHERE bytes_before < ${BYTES_PER_STEP}
     )`,
    [shopId],
  );
}
