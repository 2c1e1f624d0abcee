import { blob, index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { DELIVERY_KINDS, DELIVERY_STATUSES } from "../domain/delivery.ts";
import { ORDER_STATUSES } from "../domain/resources.ts";
import { PLANS } from "../domain/shop.ts";

/**
 * The tables as drizzle sees them. The migrations make them; a test holds the two together. Dates are epoch milliseconds.
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
const changeNumber = () => integer("change_number").notNull();

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

export const customers = sqliteTable(
  "customers",
  {
    shopId: shopId(),
    createdAt: integer("created_at").notNull(),
    id: text().notNull(),
    json: text().notNull(),
    profileAsOf: integer("profile_as_of"),
    consentAsOf: integer("consent_as_of"),
    changeNumber: changeNumber(),
  },
  (table) => [primaryKey({ columns: [table.shopId, table.createdAt, table.id] })],
);

export const subscriptions = sqliteTable(
  "subscriptions",
  {
    shopId: shopId(),
    startedAt: integer("started_at").notNull(),
    id: text().notNull(),
    json: text().notNull(),
    revision: text(),
    churnType: text("churn_type", { enum: ["voluntary", "involuntary"] }),
    cyclesGiven: integer("cycles_given", { mode: "boolean" }).notNull(),
    renewals: integer().notNull(),
    lastOrderAt: integer("last_order_at"),
    lastOrderStatus: text("last_order_status", { enum: ORDER_STATUSES }),
    changeNumber: changeNumber(),
  },
  (table) => [primaryKey({ columns: [table.shopId, table.startedAt, table.id] })],
);

export const orders = sqliteTable(
  "orders",
  {
    shopId: shopId(),
    billedAt: integer("billed_at").notNull(),
    id: text().notNull(),
    json: text().notNull(),
    attemptCount: integer("attempt_count").notNull(),
    reason: text(),
    nextRetryAt: integer("next_retry_at"),
    retriesExhausted: integer("retries_exhausted", { mode: "boolean" }),
    declined: integer({ mode: "boolean" }).notNull(),
    charged: integer({ mode: "boolean" }).notNull(),
    changeNumber: changeNumber(),
  },
  (table) => [primaryKey({ columns: [table.shopId, table.billedAt, table.id] })],
);

export const occurrences = sqliteTable(
  "occurrences",
  {
    shopId: shopId(),
    type: text({ enum: ["reward", "cancel_flow"] }).notNull(),
    id: text().notNull(),
    json: text().notNull(),
    changeNumber: changeNumber(),
  },
  (table) => [primaryKey({ columns: [table.shopId, table.type, table.id] })],
);

export const platformWebhooks = sqliteTable(
  "platform_webhooks",
  {
    shopId: shopId(),
    id: text().notNull(),
    receivedAt: integer("received_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.shopId, table.id] })],
);

export const webhookEndpoints = sqliteTable("webhook_endpoints", {
  shopId: shopId().primaryKey(),
  url: text(),
  topics: text().notNull(),
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

export const deliveries = sqliteTable("deliveries", {
  number: integer().primaryKey({ autoIncrement: true }),
  id: text().notNull().unique(),
  shopId: shopId(),
  kind: text({ enum: DELIVERY_KINDS }).notNull(),
  topic: text().notNull(),
  test: integer({ mode: "boolean" }).notNull(),
  body: text().notNull(),
  secretVersion: integer("secret_version").notNull(),
  status: text({ enum: DELIVERY_STATUSES }).notNull(),
  attempts: integer().notNull().default(0),
  round: integer().notNull().default(0),
  nextAttemptAt: integer("next_attempt_at"),
  claimableAt: integer("claimable_at"),
  lease: text(),
  lastStatusCode: integer("last_status_code"),
  error: text(),
  createdAt: integer("created_at").notNull(),
  endedAt: integer("ended_at"),
});

export const attempts = sqliteTable(
  "attempts",
  {
    delivery: integer()
      .notNull()
      .references(() => deliveries.number, { onDelete: "cascade" }),
    number: integer().notNull(),
    startedAt: integer("started_at").notNull(),
    duration: integer().notNull(),
    statusCode: integer("status_code"),
    error: text(),
  },
  (table) => [primaryKey({ columns: [table.delivery, table.number] })],
);
