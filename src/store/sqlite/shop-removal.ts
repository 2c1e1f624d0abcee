import type { Database } from "bun:sqlite";
import { REMOVAL_TOPIC, type ShopRef } from "../../domain/shop.ts";
import { BYTES_PER_STEP, EMPTIED_AT_ONCE, type LargeTable, NO_ROWS, ROWS_PER_STEP } from "../engine/removal-tables.ts";
import type { ShopRemoval } from "../port/shops.ts";

/** Tables with up to millions of rows of a shop. */
const LARGE_TABLES: LargeTable[] = [
  { name: "deliveries", key: "number", text: "body" },
  { name: "staged_order_lines", key: "stage, order_gid, gid", text: "json" },
  { name: "staged_orders", key: "stage, gid", text: "json" },
  { name: "orders", key: "billed_at, id", text: "json" },
  { name: "subscriptions", key: "started_at, id", text: "json" },
  { name: "customers", key: "created_at, id", text: "json" },
  { name: "occurrences", key: "type, id", text: "json" },
  { name: "contract_reads", key: "contract", text: "orders" },
  { name: "change_spans", key: "span", text: "''" },
  { name: "inbox", key: "number", text: "body", keptRows: `topic = '${REMOVAL_TOPIC}'` },
  {
    name: "platform_webhooks",
    key: "id",
    text: "id",
    // Ids have no topic. An id and its inbox item are stored in one transaction, with the same time.
    keptRows: `received_at IN (SELECT received_at FROM inbox WHERE shop_id = +?1 AND topic = '${REMOVAL_TOPIC}')`,
  },
];

/** Removes shops: first the mark, then large tables in steps, then the shop's row. */
export function shopRemoval(db: Database): ShopRemoval {
  const find = db.prepare<ShopRef & { removalStartedAt: number | null }, [string]>(
    "SELECT id, domain, removal_started_at AS removalStartedAt FROM shops WHERE domain = ?",
  );
  const mark = db.prepare("UPDATE shops SET removal_started_at = ? WHERE id = ?");
  const empty = EMPTIED_AT_ONCE.map((table) => db.prepare(`DELETE FROM ${table} WHERE shop_id = ?`));
  const marked = db.prepare<ShopRef, []>(
    "SELECT id, domain FROM shops WHERE removal_started_at IS NOT NULL ORDER BY removal_started_at, id",
  );
  const steps = LARGE_TABLES.map((table) => removeStepOf(db, table));
  // Foreign keys remove the rest: the removal's request, its id, and the signing secrets.
  const removeShop = db.prepare("DELETE FROM shops WHERE id = ? AND removal_started_at IS NOT NULL");

  return {
    async beginRemoval(domain, now) {
      return db
        .transaction(() => {
          const shop = find.get(domain);
          if (shop === null) return undefined;
          const { id, removalStartedAt } = shop;
          if (removalStartedAt === null) {
            mark.run(now, id);
            for (const statement of empty) statement.run(id);
          }
          return { id, domain };
        })
        .immediate();
    },

    async removing() {
      return marked.all();
    },

    async removeSome(shopId) {
      return db
        .transaction(() => {
          if (steps.some((removeStep) => removeStep(shopId) > 0)) return true;
          removeShop.run(shopId);
          return false;
        })
        .immediate();
    },
  };
}

/** @returns a function that removes some rows of a shop in the caller's transaction, and returns their count */
function removeStepOf(db: Database, { name, key, text, keptRows = NO_ROWS }: LargeTable): (shopId: number) => number {
  // A number is unique. Without the plus, SQLite would scan all rows of the shop in each step.
  const noShopIndex = key === "number" ? "+" : "";
  const remove = db.prepare<unknown, [number]>(
    `DELETE FROM ${name} WHERE ${noShopIndex}shop_id = ?1 AND (${key}) IN (
       SELECT ${key} FROM (
         SELECT ${key}, sum(size) OVER (ROWS UNBOUNDED PRECEDING) - size AS bytes_before FROM (
           SELECT ${key}, octet_length(${text}) AS size FROM ${name}
           WHERE shop_id = +?1 AND NOT (${keptRows}) LIMIT ${ROWS_PER_STEP}
         )
       ) WHERE bytes_before < ${BYTES_PER_STEP}
     )`,
  );
  return (shopId) => remove.run(shopId).changes;
}
