import type { FieldValues } from "./fields/value.ts";
import type { CancelFlowRecord, RewardRecord } from "./records/record-schemas.ts";
import type { Customer, Order, Subscription } from "./resources.ts";

/** A mirrored customer: the served resource, and values that only the mirror uses. */
export interface CustomerRow {
  kind: "customer";
  resource: Customer;
  /** The time of the platform's data, epoch milliseconds; null if only the intake sent data. */
  profileAsOf: number | null;
  consentAsOf: number | null;
  /** The time of the last redaction, epoch milliseconds; null without a redaction. */
  redactedAt: number | null;
  /** The shop's change count before the commit of the last redaction. */
  redactedAfter: number | null;
}

export interface SubscriptionRow {
  kind: "subscription";
  resource: Subscription;
  revision: string | null;
  churnType: "voluntary" | "involuntary" | null;
  /** Whether the source gave cyclesCompleted. Otherwise cyclesCompleted equals `renewals`. */
  cyclesGiven: boolean;
  /** Number of PAID and RECOVERED recurring orders. */
  renewals: number;
  /** Time of the first billing attempt of the contract's last order, epoch milliseconds. */
  lastOrderAt: number | null;
  lastOrderStatus: Order["status"] | null;
}

export interface OrderRow {
  kind: "order";
  resource: Order;
  attemptCount: number;
  reason: string | null;
  nextRetryAt: string | null;
  retriesExhausted: boolean | null;
  /** Number of ended attempts that the platform reported. The intake may have reported the same attempts. */
  platformAttempts: number;
  /** Whether any attempt was declined. */
  declined: boolean;
  /** Whether any attempt succeeded. */
  charged: boolean;
}

/** Types of occurrences. An occurrence happens only once. Its id comes from its sender. */
export type OccurrenceType = "reward" | "cancel_flow";

export interface OccurrenceRow {
  kind: "occurrence";
  record: RewardRecord | CancelFlowRecord;
}

/** The custom fields of a subscription. They are stored beside its row. */
export interface CustomFieldsRow {
  subscriptionId: string;
  /** The sort date of the subscription, epoch milliseconds. */
  startedAt: number;
  /** Empty if no field has a value. */
  values: FieldValues;
}

export type Row = CustomerRow | SubscriptionRow | OrderRow | OccurrenceRow;

export type RewardRow = OccurrenceRow & { record: RewardRecord };

export function isReward(row: Row): row is RewardRow {
  return row.kind === "occurrence" && row.record.type === "reward";
}
