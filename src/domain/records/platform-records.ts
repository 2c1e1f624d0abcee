import type { LineItem } from "../resources.ts";
import type { RetryPlan } from "../retry-plan.ts";
import type { IncomingRecord, OrderRecord } from "./record-schemas.ts";

/** Removes the personal data of a customer for good: data of the platform from before `asOf` does not bring it back. */
export interface RedactionRecord {
  type: "redaction";
  shopifyId: string;
  asOf: number;
  /** The person's contacts in the request. They are searched for, and not stored. */
  contacts?: Contacts;
}

export interface Contacts {
  email?: string;
  phone?: string;
}

/** An attempt to charge, as the platform reports it. */
export interface BillingAttempt {
  startedAt: string;
  /** null while the attempt waits, for instance for the customer's bank. */
  endedAt: string | null;
  outcome:
    | { kind: "charged"; order: OrderMoney & { shopifyId: string | null } }
    /** With `outOfStock`, a product was missing and no payment was declined. */
    | { kind: "declined"; reason: string; outOfStock: boolean }
    | { kind: "waiting" };
}

export interface OrderMoney {
  lines: LineItem[];
  subtotalCents: number;
  discountCents: number;
  creditsCents: number;
}

/**
 * A billing cycle with all its attempts, or the checkout as cycle 0. The platform has billing cycles where the mirror
 * has orders. Each record has the whole cycle, so that lost or reordered platform webhooks do not matter.
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
  /** Whether the contract has ended (FAILED, CANCELLED or EXPIRED), so that no attempt follows. */
  contractEnded: boolean;
  /** The contract's revision when it was read. If the mirror has a newer revision, `contractEnded` is ignored. */
  revision?: string | null;
  /** The expected money, used until a charge succeeds. */
  expected: OrderMoney;
  retryPlan: RetryPlan;
}

/** All records that the mirror accepts: from outside, and from the platform's adapter. */
export type MirrorRecord = IncomingRecord | RedactionRecord | BillingCycleRecord;
