import type { LineItem } from "../resources.ts";
import type { RetryPlan } from "../retry-plan.ts";
import type { IncomingRecord, OrderRecord } from "./record-schemas.ts";

/** Removes a customer's personal data permanently. Platform data older than `asOf` does not restore personal data. */
export interface RedactionRecord {
  type: "redaction";
  shopifyId: string;
  asOf: number;
  /** The person's contacts from the request. The redaction searches for them, but does not store them. */
  contacts?: Contacts;
}

export interface Contacts {
  email?: string;
  phone?: string;
}

/** An attempt to charge, as the platform reports it. */
export interface BillingAttempt {
  startedAt: string;
  /** null while the attempt waits, for example for the customer's bank. */
  endedAt: string | null;
  outcome:
    | { kind: "charged"; order: OrderMoney & { shopifyId: string | null } }
    /** If `outOfStock` is true, a product was missing and no payment was declined. */
    | { kind: "declined"; reason: string; outOfStock: boolean }
    /** The payment of a checkout was cancelled, or its authorization expired. Nothing was charged. */
    | { kind: "voided" }
    | { kind: "waiting" };
}

export interface OrderMoney {
  lines: LineItem[];
  subtotalCents: number;
  discountCents: number;
  creditsCents: number;
}

/**
 * A billing cycle with all its attempts, or the checkout as cycle 0. The platform's billing cycle is the mirror's
 * order. Each record has the whole cycle, so that lost or reordered platform webhooks do not matter.
 */
export interface BillingCycleRecord {
  type: "billing_cycle";
  subscription: string;
  source: OrderRecord["source"];
  cycleNumber: number;
  skipped: boolean;
  /** When the first attempt of the cycle is expected. */
  expectedAt: string;
  attempts: BillingAttempt[];
  /** Whether the contract has ended (FAILED, CANCELLED or EXPIRED). No attempt follows then. */
  contractEnded: boolean;
  /** The contract's revision when it was read. If the mirror has a newer revision, `contractEnded` is ignored. */
  revision?: string | null;
  /** The expected money. It applies until a charge succeeds. */
  expected: OrderMoney;
  retryPlan: RetryPlan;
  /** Whether `cycleNumber` was unused when the cycle was read. The record is refused if another cycle has it now. */
  isNew?: boolean;
}

/** All records that the mirror accepts: from outside, and from the platform adapter. */
export type MirrorRecord = IncomingRecord | RedactionRecord | BillingCycleRecord;
