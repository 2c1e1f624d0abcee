import type { Database } from "bun:sqlite";
import type { CommitKeys } from "../../domain/commit-keys.ts";
import type { Order, Subscription } from "../../domain/resources.ts";
import { type LoadedRows, missingCustomers, noRows, occurrenceKey } from "../../domain/snapshot.ts";
import type { CustomerRow, OccurrenceType, OrderRow, Row, SubscriptionRow } from "../../domain/state.ts";
import { isoUtc } from "../../lib/time.ts";
import type { MirroredContract } from "../mirror.ts";

/** The mirror's tables as rows of the domain, inside the caller's transaction. */
export interface MirrorRows {
  /** Loads all that a commit needs of one shop, except its texts, and with the customers of loaded contracts. */
  load(keys: CommitKeys): LoadedRows;
  /** The orders with these ids that exist. */
  orders(shopId: number, ids: readonly string[]): Order[];
  contract(shopId: number, contractId: string): MirroredContract | undefined;
  /** Those of the contracts with these ids that exist. */
  contracts(shopId: number, ids: readonly string[]): string[];
  /** Inserts a row, or replaces the row with its id. Its sort date is part of the primary key and never changes. */
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
export function mirrorRows(db: Database): MirrorRows {
  const customer = db.prepare<StoredCustomer, [number, string]>(
    "SELECT json, profile_as_of, consent_as_of FROM customers WHERE shop_id = ? AND id = ?",
  );
  const subscription = db.prepare<StoredSubscription, [number, string]>(
    `SELECT json, revision, churn_type, cycles_given, renewals, last_order_at, last_order_status FROM subscriptions
     WHERE shop_id = ? AND id = ?`,
  );
  const order = db.prepare<StoredOrder, [number, string]>(
    `SELECT json, attempt_count, reason, next_retry_at, retries_exhausted, declined, charged, platform_attempts
       FROM orders
     WHERE shop_id = ? AND id = ?`,
  );
  const occurrence = db.prepare<{ 1: number }, [number, OccurrenceType, string]>(
    "SELECT 1 FROM occurrences WHERE shop_id = ? AND type = ? AND id = ?",
  );
  const orders = db.prepare<{ json: string }, [number, string]>(
    `SELECT json FROM orders INDEXED BY orders_by_id
     WHERE shop_id = +? AND id IN (SELECT value FROM json_each(+?))`,
  );
  const contracts = db.prepare<{ id: string }, [number, string]>(
    `SELECT id FROM subscriptions INDEXED BY subscriptions_by_id
     WHERE shop_id = +? AND id IN (SELECT value FROM json_each(+?))`,
  );
  const contract = db.prepare<{ json: string; customerGid: string }, [number, string]>(
    `SELECT subscriptions.json, customers.json ->> '$.shopifyId' AS customerGid FROM subscriptions
     JOIN customers ON customers.shop_id = subscriptions.shop_id
     AND customers.id = subscriptions.json ->> '$.customerId'
     WHERE subscriptions.shop_id = +? AND subscriptions.id = +?`,
  );

  const writeCustomer = upsert(
    db,
    "customers",
    ["shop_id", "created_at", "id"],
    ["json", "profile_as_of", "consent_as_of"],
  );
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
    [
      "json",
      "attempt_count",
      "reason",
      "next_retry_at",
      "retries_exhausted",
      "declined",
      "charged",
      "platform_attempts",
    ],
  );
  const writeOccurrence = upsert(db, "occurrences", ["shop_id", "type", "id"], ["json"]);

  return {
    load({ shop, ...keys }) {
      const loaded = noRows();
      for (const id of keys.subscriptions) loaded.subscriptions.set(id, subscriptionRow(subscription.get(shop.id, id)));
      for (const id of keys.orders) loaded.orders.set(id, orderRow(order.get(shop.id, id)));
      for (const id of keys.customers) loaded.customers.set(id, customerRow(customer.get(shop.id, id)));
      for (const id of missingCustomers(loaded)) loaded.customers.set(id, customerRow(customer.get(shop.id, id)));
      for (const type of ["reward", "cancel_flow"] as const) {
        for (const id of keys.occurrences[type])
          loaded.occurrences.set(occurrenceKey(type, id), occurrence.get(shop.id, type, id) !== null);
      }
      return loaded;
    },

    orders(shopId, ids) {
      return orders.all(shopId, JSON.stringify(ids)).map(({ json }) => JSON.parse(json) as Order);
    },

    contract(shopId, contractId) {
      const found = contract.get(shopId, contractId);
      if (found === null) return undefined;
      return { subscription: JSON.parse(found.json) as Subscription, customerGid: found.customerGid };
    },

    contracts(shopId, ids) {
      return contracts.all(shopId, JSON.stringify(ids)).map(({ id }) => id);
    },

    write(shopId, row, changeNumber) {
      switch (row.kind) {
        case "customer": {
          const { resource, profileAsOf, consentAsOf } = row;
          const key = [shopId, Date.parse(resource.createdAt), resource.id];
          writeCustomer.run(...key, JSON.stringify(resource), profileAsOf, consentAsOf, changeNumber);
          return;
        }
        case "subscription": {
          const { resource, revision, churnType, cyclesGiven, renewals, lastOrderAt, lastOrderStatus } = row;
          const key = [shopId, Date.parse(resource.startedAt), resource.id];
          const values = [
            JSON.stringify(resource),
            revision,
            churnType,
            cyclesGiven,
            renewals,
            lastOrderAt,
            lastOrderStatus,
          ];
          writeSubscription.run(...key, ...values, changeNumber);
          return;
        }
        case "order": {
          const { resource, attemptCount, reason, nextRetryAt, retriesExhausted, declined, charged, platformAttempts } =
            row;
          const key = [shopId, Date.parse(resource.billedAt), resource.id];
          const retryAt = nextRetryAt === null ? null : Date.parse(nextRetryAt);
          const values = [
            JSON.stringify(resource),
            attemptCount,
            reason,
            retryAt,
            retriesExhausted,
            declined,
            charged,
            platformAttempts,
          ];
          writeOrder.run(...key, ...values, changeNumber);
          return;
        }
        case "occurrence":
          writeOccurrence.run(shopId, row.record.type, row.record.id, JSON.stringify(row.record), changeNumber);
      }
    },
  };
}

function customerRow(stored: StoredCustomer | null): CustomerRow | null {
  if (stored === null) return null;
  return {
    kind: "customer",
    resource: JSON.parse(stored.json),
    profileAsOf: stored.profile_as_of,
    consentAsOf: stored.consent_as_of,
  };
}

function subscriptionRow(stored: StoredSubscription | null): SubscriptionRow | null {
  if (stored === null) return null;
  return {
    kind: "subscription",
    resource: JSON.parse(stored.json),
    revision: stored.revision,
    churnType: stored.churn_type,
    cyclesGiven: stored.cycles_given === 1,
    renewals: stored.renewals,
    lastOrderAt: stored.last_order_at,
    lastOrderStatus: stored.last_order_status,
  };
}

function orderRow(stored: StoredOrder | null): OrderRow | null {
  if (stored === null) return null;
  return {
    kind: "order",
    resource: JSON.parse(stored.json),
    attemptCount: stored.attempt_count,
    reason: stored.reason,
    nextRetryAt: stored.next_retry_at === null ? null : isoUtc(stored.next_retry_at),
    retriesExhausted: stored.retries_exhausted === null ? null : stored.retries_exhausted === 1,
    platformAttempts: stored.platform_attempts,
    declined: stored.declined === 1,
    charged: stored.charged === 1,
  };
}

function upsert(db: Database, table: string, key: string[], values: string[]) {
  const columns = [...key, ...values, "change_number"];
  const updates = [...values, "change_number"].map((column) => `${column} = excluded.${column}`);
  return db.prepare<unknown, (string | number | boolean | null)[]>(
    `INSERT INTO ${table} (${columns}) VALUES (${columns.map(() => "?")})
     ON CONFLICT (${key}) DO UPDATE SET ${updates}`,
  );
}
