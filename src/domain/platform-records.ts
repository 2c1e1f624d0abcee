import type { IncomingRecord, OrderRecord } from "./records.ts";
import type { LineItem } from "./resources.ts";
import type { RetryPlan } from "./retry-plan.ts";

/** Takes the personal data out of a customer, for good: what the platform said before `asOf` does not bring it back. */
export interface RedactionRecord {
  type: "redaction";
  shopifyId: string;
  asOf: number;
}

/** An attempt to charge, as the platform tells it. */
export interface BillingAttempt {
  startedAt: string;
  /** null while it waits, for the customer's bank for instance. */
  endedAt: string | null;
  outcome: { kind: "charged"; order: OrderMoney & { shopifyId: string | null } } | { kind: "declined"; reason: string } | { kind: "waiting" };
}

export interface OrderMoney {
  lines: LineItem[];
  subtotalCents: number;
  discountCents: number;
  creditsCents: number;
}

/**
 * A billing cycle with all its attempts, or the checkout as cycle 0: what the platform has in the place of an order. Told whole each time, so that
 * it makes no difference which of its webhooks came, and in which order.
 */
export interface BillingCycleRecord {
  type: "billing_cycle";
  subscription: string;
  source: OrderRecord["source"];
  cycleNumber: number;
  skipped: boolean;
  /** When its first attempt is expected. */
  expectedAt: string;
  attempts: BillingAttempt[];
  /** What it will cost, as long as nothing was charged. */
  expected: OrderMoney;
  retryPlan: RetryPlan;
}

/** What the mirror takes: what may be sent from outside, and what the platform alone tells. */
export type MirrorRecord = IncomingRecord | RedactionRecord | BillingCycleRecord;
