import { blob, index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Topic } from "../domain/event.ts";
import { PLANS } from "../domain/shop.ts";

/**
 * The tables that are queried through drizzle: what operators set. The mirror and the deliveries, where speed counts, have prepared statements in
 * rows.ts, pages.ts, outbox.ts and deliveries.ts. The migrations make all of them; a test holds these to that. Dates are epoch milliseconds.
 */
export const shops = sqliteTable("shops", {
  id: integer().primaryKey({ autoIncrement: true }),
  domain: text().notNull().unique(),
  plan: text({ enum: PLANS }).notNull(),
  currency: text().notNull(),
  intakeSecret: blob("intake_secret", { mode: "buffer" }).notNull(),
  changeCount: integer("change_count").notNull().default(0),
  createdAt: integer("created_at").notNull(),
});

const shopId = () =>
  integer("shop_id")
    .notNull()
    .references(() => shops.id, { onDelete: "cascade" });

export const apiKeys = sqliteTable(
  "api_keys",
  {
    id: text().primaryKey(),
    shopId: shopId(),
    label: text().notNull(),
    hash: blob({ mode: "buffer" }).notNull().unique(),
    fingerprint: text().notNull(),
    legacy: integer({ mode: "boolean" }).notNull(),
    createdAt: integer("created_at").notNull(),
    lastUsedAt: integer("last_used_at"),
    revokedAt: integer("revoked_at"),
  },
  (table) => [index("api_keys_of_shop").on(table.shopId, table.createdAt)],
);

export const webhookEndpoints = sqliteTable("webhook_endpoints", {
  shopId: shopId().primaryKey(),
  url: text(),
  topics: text({ mode: "json" }).$type<Topic[]>().notNull(),
});

export const webhookSecrets = sqliteTable(
  "webhook_secrets",
  {
    shopId: shopId(),
    version: integer().notNull(),
    sealed: blob({ mode: "buffer" }).notNull(),
    createdAt: integer("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.shopId, table.version] })],
);
