import { blob, index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Topic } from "../../domain/events/event.ts";
import type { TriggerHandle } from "../../domain/events/trigger.ts";
import type { SyncRun } from "../../domain/platform/sync.ts";
import { DEFAULT_RETRY_DAYS, type RetryPlan } from "../../domain/retry-plan.ts";
import { DEFAULT_CREDIT_TITLE, PLANS } from "../../domain/shop.ts";

/**
 * The tables that drizzle queries: what operators set. The mirror and the deliveries, where speed counts, have prepared
 * statements in rows.ts, pages.ts, mirror.ts and deliveries.ts. The migrations make all tables; a test compares them
 * with this schema. Dates are epoch milliseconds.
 */
export const shops = sqliteTable("shops", {
  id: integer().primaryKey({ autoIncrement: true }),
  domain: text().notNull().unique(),
  plan: text({ enum: PLANS }).notNull(),
  currency: text().notNull(),
  intakeSecret: blob("intake_secret", { mode: "buffer" }).notNull(),
  changeCount: integer("change_count").notNull().default(0),
  createdAt: integer("created_at").notNull(),
  planFixed: integer("plan_fixed", { mode: "boolean" }).notNull().default(false),
  retryDays: text("retry_days", { mode: "json" }).$type<RetryPlan>().notNull().default(DEFAULT_RETRY_DAYS),
  creditTitle: text("credit_title").notNull().default(DEFAULT_CREDIT_TITLE),
  triggers: text({ mode: "json" }).$type<TriggerHandle[]>().notNull().default([]),
  customerCount: integer("customer_count").notNull().default(0),
  subscriptionCount: integer("subscription_count").notNull().default(0),
  orderCount: integer("order_count").notNull().default(0),
  /** Since when the shop is being removed. */
  removalStartedAt: integer("removal_started_at"),
  changeSpan: integer("change_span").notNull().default(0),
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
  pace: text({ enum: ["quick", "slow"] }),
  timedOutAt: integer("timed_out_at"),
});

export const webhookSecrets = sqliteTable(
  "webhook_secrets",
  {
    shopId: shopId(),
    version: integer().notNull(),
    sealed: blob({ mode: "buffer" }).notNull(),
    createdAt: integer("created_at").notNull(),
    overlapEndsAt: integer("overlap_ends_at"),
  },
  (table) => [primaryKey({ columns: [table.shopId, table.version] })],
);

export const connections = sqliteTable("connections", {
  shopId: shopId().primaryKey(),
  kind: text({ enum: ["client_credentials", "token", "refresh"] }).notNull(),
  sealed: blob({ mode: "buffer" }).notNull(),
  expiresAt: integer("expires_at"),
  scopes: text().notNull(),
  connectedAt: integer("connected_at").notNull(),
  eventsSince: integer("events_since").notNull(),
  renewing: text(),
  renewingUntil: integer("renewing_until"),
  trouble: text(),
});

export const syncs = sqliteTable(
  "syncs",
  {
    shopId: shopId(),
    kind: text({ enum: ["full", "changes"] }).notNull(),
    run: text({ mode: "json" }).$type<SyncRun>(),
    lastStartedAt: integer("last_started_at"),
    lastEndedAt: integer("last_ended_at"),
    lastChanged: integer("last_changed"),
  },
  (table) => [primaryKey({ columns: [table.shopId, table.kind] })],
);

export const adminLinks = sqliteTable(
  "admin_links",
  {
    hash: blob({ mode: "buffer" }).primaryKey(),
    shopId: shopId(),
    expiresAt: integer("expires_at").notNull(),
    usedAt: integer("used_at"),
  },
  (table) => [index("admin_links_of_shop").on(table.shopId)],
);

export const adminSessions = sqliteTable(
  "admin_sessions",
  {
    hash: blob({ mode: "buffer" }).primaryKey(),
    shopId: shopId(),
    createdAt: integer("created_at").notNull(),
    expiresAt: integer("expires_at").notNull(),
  },
  (table) => [index("admin_sessions_of_shop").on(table.shopId)],
);

/** Texts about the database itself, by name. */
export const meta = sqliteTable("meta", { name: text().primaryKey(), value: text().notNull() });
