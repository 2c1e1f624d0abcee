import { type SQL, sql as template } from "drizzle-orm";
import { SdsError } from "../../domain/error.ts";
import { REMOVAL_TOPIC, type ShopRef } from "../../domain/shop.ts";
import type { ShopRemoval } from "../port/shops.ts";
import { either, lockFor, type QuietDatabase, sql, type TransactionWork, tx } from "./quiet-database.ts";

/** Small tables. The transaction that marks the shop empties them, so keys and sessions end at once. */
const EMPTIED_AT_ONCE = [
  "admin_links",
  "admin_sessions",
  "api_keys",
  "webhook_endpoints",
  "connections",
  "platform_warnings",
  "alerts",
  "alert_notices",
  "alert_addresses",
  "syncs",
  "order_stages",
  "data_requests",
  "custom_fields",
  "widget_styles",
];

/** A table that may have millions of rows of a shop. */
interface LargeTable {
  name: string;
  /** Columns of the primary key, without `shop_id`. */
  key: string;
  /** The largest column. */
  text: string;
  /** SQL condition of rows that stay until the last step, such as the platform webhook that requested this removal. */
  isKept?: (shopId: number) => SQL;
}

/** SQL condition of shops that are being removed. Excludes moving shops, which have the same mark. */
const IS_REMOVED = sql`removal_started_at IS NOT NULL AND id NOT IN (
  SELECT shop_id FROM shop_moves WHERE shop_id IS NOT NULL)`;

/**
 * Maximum number of rows and bytes in one step. Both are low, because writers wait while a step runs. Neither counts
 * the attempts that SQLite removes with their deliveries.
 */
const STEP = { rows: sql`400`, bytes: sql`524288` };

/** Removes shops. First marks the shop, then empties large tables in steps, then removes the shop's row. */
export function shopRemoval(db: QuietDatabase): ShopRemoval {
  const tables = largeTables(db);
  return {
    beginRemoval: (domain, now) => db.transaction(() => markShop(db, domain, now)),
    removing: () =>
      db.all<ShopRef>(sql`SELECT id, domain FROM shops WHERE ${IS_REMOVED} ORDER BY removal_started_at, id`),
    removeSome: (shopId) => db.transaction(() => removeSome(db, tables, shopId)),
  };
}

/**
 * Lists the large tables. In SQLite, rows are clustered by their sort dates, so keys include the dates. SQLite needs no
 * step for attempts, because a foreign key removes them with their deliveries.
 */
function largeTables({ engine }: QuietDatabase): LargeTable[] {
  const dated = (date: string) => (engine === "sqlite" ? `${date}, id` : "id");
  const attempts = { name: "attempts", key: "delivery, number", text: "coalesce(answer, '')" };
  return [
    ...(engine === "sqlite" ? [] : [attempts]),
    { name: "deliveries", key: "number", text: "body" },
    // Must come after the deliveries, because attempts are counted as long as deliveries exist.
    { name: "delivery_counts", key: "kind, day, outcome", text: "''" },
    { name: "unsent_events", key: "day, subject, topic, cycle", text: "''" },
    { name: "staged_order_lines", key: "stage, order_gid, gid", text: "json" },
    { name: "staged_orders", key: "stage, gid", text: "json" },
    { name: "orders", key: dated("billed_at"), text: "json" },
    { name: "subscription_fields", key: dated("started_at"), text: "json" },
    { name: "subscriptions", key: dated("started_at"), text: "json" },
    { name: "customers", key: dated("created_at"), text: "json" },
    { name: "occurrences", key: "type, id", text: "json" },
    { name: "contract_reads", key: "contract", text: "orders" },
    { name: "change_spans", key: "span", text: "''" },
    { name: "audit", key: "number", text: "''" },
    { name: "inbox", key: "number", text: "body", isKept: () => sql`topic = ${REMOVAL_TOPIC}` },
    {
      name: "platform_webhooks",
      key: "id",
      text: "id",
      // This table has no topic. A row has the same time as its inbox item, because one transaction stored both.
      isKept: (shopId) =>
        sql`received_at IN (SELECT received_at FROM inbox WHERE shop_id = ${shopId} AND topic = ${REMOVAL_TOPIC})`,
    },
  ];
}

function* markShop(db: QuietDatabase, domain: string, now: number): TransactionWork<ShopRef | undefined> {
  // This lock waits for transactions that add rows to the shop. Transactions that begin later wait for the lock, and
  // then see the mark.
  const shop = yield* tx.get<ShopRef & { removalStartedAt: number | null }>(
    sql`SELECT id, domain, removal_started_at AS "removalStartedAt" FROM shops
      WHERE domain = ${domain} ${lockFor(db, "UPDATE")}`,
  );
  if (shop === undefined) return undefined;
  const { id, removalStartedAt } = shop;
  const stopped = yield* tx.get(
    sql`SELECT 1 AS one FROM shop_moves WHERE shop_id = ${id} AND state = 'leaving' AND stop IS NOT NULL`,
  );
  if (stopped !== undefined)
    throw new SdsError(
      "conflict",
      `${domain} is moving to another database: remove it when it has moved, or give up the move with --cancel`,
    );
  // Cancels a move of the shop.
  const moves = yield* tx.run(sql`DELETE FROM shop_moves WHERE shop_id = ${id}`);
  if (removalStartedAt === null) yield* tx.run(sql`UPDATE shops SET removal_started_at = ${now} WHERE id = ${id}`);
  if (removalStartedAt === null || moves > 0) yield* emptyAtOnce(id);
  return { id, domain };
}

/** Empties the small tables of a shop that is marked for removal. */
export function* emptyAtOnce(shopId: number): TransactionWork<void> {
  for (const table of EMPTIED_AT_ONCE) yield* tx.run(sql`DELETE FROM ${template.raw(table)} WHERE shop_id = ${shopId}`);
}

function* removeSome(db: QuietDatabase, tables: readonly LargeTable[], shopId: number): TransactionWork<boolean> {
  const marked = yield* tx.get(
    sql`SELECT id FROM shops WHERE id = ${shopId} AND ${IS_REMOVED} ${lockFor(db, "UPDATE")}`,
  );
  if (marked === undefined) return false;
  for (const table of tables) if ((yield* tx.run(removeStep(db, table, shopId))) > 0) return true;
  // Removes the platform webhook that requested the removal, and its id. Foreign keys remove the remaining rows.
  yield* tx.run(sql`DELETE FROM platform_webhooks WHERE shop_id = ${shopId}`);
  yield* tx.run(sql`DELETE FROM inbox WHERE shop_id = ${shopId}`);
  yield* tx.run(sql`DELETE FROM shops WHERE id = ${shopId}`);
  return false;
}

/** Returns a statement that removes some rows of a shop. */
function removeStep(db: QuietDatabase, { name, key, text, isKept }: LargeTable, shopId: number): SQL {
  const [table, columns] = [template.raw(name), template.raw(key)];
  // With the plus, SQLite finds the rows by `number`, which is unique among all shops. Otherwise it would scan all rows
  // of the shop in each step.
  const shopColumn = either(db, {
    sqlite: template.raw(key === "number" ? "+shop_id" : "shop_id"),
    postgres: sql`shop_id`,
  });
  // SQLite reads in the order of the key anyway. With an ORDER BY, it would sort all rows of the shop.
  const order = either(db, { sqlite: sql``, postgres: sql`ORDER BY ${columns}` });
  const others = isKept === undefined ? sql`` : sql`AND NOT (${isKept(shopId)})`;
  return sql`DELETE FROM ${table} WHERE ${shopColumn} = ${shopId} AND (${columns}) IN (
      SELECT ${columns} FROM (
        SELECT ${columns}, sum(size) OVER (${order} ROWS UNBOUNDED PRECEDING) - size AS bytes_before FROM (
          SELECT ${columns}, octet_length(${template.raw(text)}) AS size FROM ${table}
          WHERE shop_id = ${shopId} ${others} ${order} LIMIT ${STEP.rows}
        ) AS rows_of_step
      ) AS sized WHERE bytes_before < ${STEP.bytes}
    )`;
}
