import type { ShopState } from "../../domain/decide/commit.ts";
import type { Topic } from "../../domain/events/event.ts";
import type { TriggerHandle } from "../../domain/events/trigger.ts";
import type { Resource } from "../../domain/resources.ts";
import type { CustomerRow, OrderRow, Row, SubscriptionRow } from "../../domain/rows.ts";
import type { Plan } from "../../domain/shop.ts";
import { isoUtc } from "../../lib/time.ts";

/** Columns of the mirror's tables. `key` columns identify a row and never change. `values` columns can change. */
export const MIRROR_COLUMNS = {
  customers: {
    key: ["created_at", "id"],
    values: ["json", "profile_as_of", "consent_as_of", "redacted_at", "redacted_after"],
  },
  subscriptions: {
    key: ["started_at", "id"],
    values: ["json", "revision", "churn_type", "cycles_given", "renewals", "last_order_at", "last_order_status"],
  },
  orders: {
    key: ["billed_at", "id"],
    values: [
      "json",
      "attempt_count",
      "reason",
      "next_retry_at",
      "retries_exhausted",
      "declined",
      "charged",
      "platform_attempts",
    ],
  },
  occurrences: { key: ["type", "id"], values: ["json"] },
} as const;

export type MirrorTable = keyof typeof MIRROR_COLUMNS;
export type MirrorValue = string | number | boolean | null;

interface WrittenRow {
  table: MirrorTable;
  /** Values of the columns in MIRROR_COLUMNS, the values of the key first. */
  values: MirrorValue[];
}

/** Converts a row to its stored form. */
export function writtenRow(row: Row): WrittenRow {
  switch (row.kind) {
    case "customer": {
      const { resource, profileAsOf, consentAsOf, redactedAt, redactedAfter } = row;
      const key = [Date.parse(resource.createdAt), resource.id];
      const own = [profileAsOf, consentAsOf, redactedAt, redactedAfter];
      return { table: "customers", values: [...key, JSON.stringify(resource), ...own] };
    }
    case "subscription": {
      const { resource, revision, churnType, cyclesGiven, renewals, lastOrderAt, lastOrderStatus } = row;
      const key = [Date.parse(resource.startedAt), resource.id];
      const own = [revision, churnType, cyclesGiven, renewals, lastOrderAt, lastOrderStatus];
      return { table: "subscriptions", values: [...key, JSON.stringify(resource), ...own] };
    }
    case "order": {
      const { resource, attemptCount, reason, nextRetryAt, retriesExhausted, declined, charged, platformAttempts } =
        row;
      const key = [Date.parse(resource.billedAt), resource.id];
      const retryAt = nextRetryAt === null ? null : Date.parse(nextRetryAt);
      const own = [attemptCount, reason, retryAt, retriesExhausted, declined, charged, platformAttempts];
      return { table: "orders", values: [...key, JSON.stringify(resource), ...own] };
    }
    case "occurrence": {
      const { record } = row;
      return { table: "occurrences", values: [record.type, record.id, JSON.stringify(record)] };
    }
  }
}

/** A boolean, which SQLite returns as 0 or 1. */
type Flag = number | boolean;

interface StoredCustomer {
  json: string;
  profile_as_of: number | null;
  consent_as_of: number | null;
  redacted_at: number | null;
  redacted_after: number | null;
}

interface StoredSubscription {
  json: string;
  revision: string | null;
  churn_type: SubscriptionRow["churnType"];
  cycles_given: Flag;
  renewals: number;
  last_order_at: number | null;
  last_order_status: SubscriptionRow["lastOrderStatus"];
}

interface StoredOrder {
  json: string;
  attempt_count: number;
  reason: string | null;
  next_retry_at: number | null;
  retries_exhausted: Flag | null;
  declined: Flag;
  charged: Flag;
  platform_attempts: number;
}

export type StoredRow = StoredCustomer | StoredSubscription | StoredOrder;

/** Converts a stored row, with the columns `MIRROR_COLUMNS.values`, to a row of the domain. */
export function mirroredRow(table: Resource, row: StoredRow): Row {
  if (table === "customers") return customerRow(row as StoredCustomer);
  return table === "subscriptions" ? subscriptionRow(row as StoredSubscription) : orderRow(row as StoredOrder);
}

function customerRow(stored: StoredCustomer): CustomerRow {
  return {
    kind: "customer",
    resource: JSON.parse(stored.json),
    profileAsOf: stored.profile_as_of,
    consentAsOf: stored.consent_as_of,
    redactedAt: stored.redacted_at,
    redactedAfter: stored.redacted_after,
  };
}

function subscriptionRow(stored: StoredSubscription): SubscriptionRow {
  return {
    kind: "subscription",
    resource: JSON.parse(stored.json),
    revision: stored.revision,
    churnType: stored.churn_type,
    cyclesGiven: Boolean(stored.cycles_given),
    renewals: stored.renewals,
    lastOrderAt: stored.last_order_at,
    lastOrderStatus: stored.last_order_status,
  };
}

function orderRow(stored: StoredOrder): OrderRow {
  return {
    kind: "order",
    resource: JSON.parse(stored.json),
    attemptCount: stored.attempt_count,
    reason: stored.reason,
    nextRetryAt: stored.next_retry_at === null ? null : isoUtc(stored.next_retry_at),
    retriesExhausted: stored.retries_exhausted === null ? null : Boolean(stored.retries_exhausted),
    platformAttempts: stored.platform_attempts,
    declined: Boolean(stored.declined),
    charged: Boolean(stored.charged),
  };
}

/** The stored state of a shop that a commit needs. */
export interface StoredState {
  plan: Plan;
  url: string | null;
  /** JSON array; null without an endpoint. */
  topics: string | null;
  /** JSON array. */
  triggers: string;
  secretVersion: number | null;
  isConnected: Flag;
  changeCount: number;
  spanNumber: number;
  previousSpanCount: number;
  customers: number;
  subscriptions: number;
  orders: number;
}

export function stateOf({ customers, subscriptions, orders, ...stored }: StoredState): ShopState {
  return {
    ...stored,
    topics: stored.topics === null ? [] : (JSON.parse(stored.topics) as Topic[]),
    triggers: JSON.parse(stored.triggers) as TriggerHandle[],
    isConnected: Boolean(stored.isConnected),
    counts: { customers, subscriptions, orders },
  };
}
