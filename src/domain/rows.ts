import type { CancelFlowRecord, RewardRecord } from "./records/record-schemas.ts";
import type { Customer, Order, Subscription } from "./resources.ts";

/** A mirrored customer: the resource that is served, and what the mirror has to remember beside it. */
export interface CustomerRow {
  kind: "customer";
  resource: Customer;
  /**
   * The time of the platform's data about profile and consent, epoch milliseconds; null where only the intake sent
   * data.
   */
  profileAsOf: number | null;
  consentAsOf: number | null;
}

export interface SubscriptionRow {
  kind: "subscription";
  resource: Subscription;
  revision: string | null;
  churnType: "voluntary" | "involuntary" | null;
  /** Whether cyclesCompleted is the source's own number. If not, it is `renewals`. */
  cyclesGiven: boolean;
  /** PAID and RECOVERED recurring orders. */
  renewals: number;
  /** First billing attempt (epoch milliseconds) and status of the contract's last order. */
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
  /** Ended attempts that the platform reported. The intake may have reported them too. */
  platformAttempts: number;
  /** Whether any attempt was declined. */
  declined: boolean;
  /** Whether any attempt succeeded. */
  charged: boolean;
}

/** Something that happened once, known by the sender's own id: a reward or the end of a cancellation flow. */
export type OccurrenceType = "reward" | "cancel_flow";

export interface OccurrenceRow {
  kind: "occurrence";
  record: RewardRecord | CancelFlowRecord;
}

export type Row = CustomerRow | SubscriptionRow | OrderRow | OccurrenceRow;
