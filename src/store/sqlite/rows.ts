import type { Database } from "bun:sqlite";
import type { CustomerRow, OrderRow, Row, SubscriptionRow } from "../../domain/state.ts";
import { isoUtc } from "../../lib/time.ts";

/** The mirror's tables as rows of the domain. Everything here runs inside the caller's transaction. */
export interface Rows {
  customer(id: string): CustomerRow | undefined;
  subscription(id: string): SubscriptionRow | undefined;
  order(id: string): OrderRow | undefined;
  hasOccurrence(shopId: number, type: string, id: string): boolean;
  /** Writes a row as new or over the one with its id. Its sort date is part of its place in the table and never changes. */
  write(shopId: number, row: Row, changeNumber: number): void;
}

interface StoredCustomer {
  json: string;
  profile_as_of: number | null;
  consent_as_of: number | null;
}

interface StoredSubscription {
  json: string;
  revision: string | null;
  churn_type: SubscriptionRow["churnType"];
  cycles_given: number;
  renewals: number;
  last_order_at: number | null;
  last_order_status: SubscriptionRow["lastOrderStatus"];
}

interface StoredOrder {
  json: string;
  attempt_count: number;
  reason: string | null;
  next_retry_at: number | null;
  retries_exhausted: number | null;
  declined: number;
  charged: number;
  platform_attempts: number;
}

/** Raw statements: this is where an import spends its time. */
export function mirrorRows(db: Database): Rows {
  const customer = db.prepare<StoredCustomer, [string]>("SELECT json, profile_as_of, consent_as_of FROM customers WHERE id = ?");
  const subscription = db.prepare<StoredSubscription, [string]>(
    "SELECT json, revision, churn_type, cycles_given, renewals, last_order_at, last_order_status FROM subscriptions WHERE id = ?",
  );
  const order = db.prepare<StoredOrder, [string]>(
    "SELECT json, attempt_count, reason, next_retry_at, retries_exhausted, declined, charged, platform_attempts FROM orders WHERE id = ?",
  );
  const occurrence = db.prepare<{ 1: number }, [number, string, string]>("SELECT 1 FROM occurrences WHERE shop_id = ? AND type = ? AND id = ?");

  const writeCustomer = upsert(db, "customers", ["shop_id", "created_at", "id"], ["json", "profile_as_of", "consent_as_of"]);
  const writeSubscription = upsert(
    db,
    "subscriptions",
    ["shop_id", "started_at", "id"],
    ["json", "revision", "churn_type", "cycles_given", "renewals", "last_order_at", "last_order_status"],
  );
  const writeOrder = upsert(
    db,
    "orders",
    ["shop_id", "billed_at", "id"],
    ["json", "attempt_count", "reason", "next_retry_at", "retries_exhausted", "declined", "charged", "platform_attempts"],
  );
  const writeOccurrence = upsert(db, "occurrences", ["shop_id", "type", "id"], ["json"]);

  return {
    customer(id) {
      const found = customer.get(id);
      if (found === null) return undefined;
      return { kind: "customer", resource: JSON.parse(found.json), profileAsOf: found.profile_as_of, consentAsOf: found.consent_as_of };
    },

    subscription(id) {
      const found = subscription.get(id);
      if (found === null) return undefined;
      return {
        kind: "subscription",
        resource: JSON.parse(found.json),
        revision: found.revision,
        churnType: found.churn_type,
        cyclesGiven: found.cycles_given === 1,
        renewals: found.renewals,
        lastOrderAt: found.last_order_at,
        lastOrderStatus: found.last_order_status,
      };
    },

    order(id) {
      const found = order.get(id);
      if (found === null) return undefined;
      return {
        kind: "order",
        resource: JSON.parse(found.json),
        attemptCount: found.attempt_count,
        reason: found.reason,
        nextRetryAt: found.next_retry_at === null ? null : isoUtc(found.next_retry_at),
        retriesExhausted: found.retries_exhausted === null ? null : found.retries_exhausted === 1,
        platformAttempts: found.platform_attempts,
        declined: found.declined === 1,
        charged: found.charged === 1,
      };
    },

    hasOccurrence(shopId, type, id) {
      return occurrence.get(shopId, type, id) !== null;
    },

    write(shopId, row, changeNumber) {
      switch (row.kind) {
        case "customer": {
          const { resource, profileAsOf, consentAsOf } = row;
          const place = [shopId, Date.parse(resource.createdAt), resource.id];
          writeCustomer.run(...place, JSON.stringify(resource), profileAsOf, consentAsOf, changeNumber);
          return;
        }
        case "subscription": {
          const { resource, revision, churnType, cyclesGiven, renewals, lastOrderAt, lastOrderStatus } = row;
          const place = [shopId, Date.parse(resource.startedAt), resource.id];
          const values = [JSON.stringify(resource), revision, churnType, cyclesGiven, renewals, lastOrderAt, lastOrderStatus];
          writeSubscription.run(...place, ...values, changeNumber);
          return;
        }
        case "order": {
          const { resource, attemptCount, reason, nextRetryAt, retriesExhausted, declined, charged, platformAttempts } = row;
          const place = [shopId, Date.parse(resource.billedAt), resource.id];
          const retryAt = nextRetryAt === null ? null : Date.parse(nextRetryAt);
          const values = [JSON.stringify(resource), attemptCount, reason, retryAt, retriesExhausted, declined, charged, platformAttempts];
          writeOrder.run(...place, ...values, changeNumber);
          return;
        }
        case "occurrence":
          writeOccurrence.run(shopId, row.record.type, row.record.id, JSON.stringify(row.record), changeNumber);
      }
    },
  };
}

function upsert(db: Database, table: string, key: string[], values: string[]) {
  const columns = [...key, ...values, "change_number"];
  const updates = [...values, "change_number"].map((column) => `${column} = excluded.${column}`);
  return db.prepare<unknown, (string | number | boolean | null)[]>(
    `INSERT INTO ${table} (${columns}) VALUES (${columns.map(() => "?")}) ON CONFLICT (${key}) DO UPDATE SET ${updates}`,
  );
}
