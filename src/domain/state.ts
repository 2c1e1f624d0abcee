import type { Event } from "./event.ts";
import type { ShopIds } from "./ids.ts";
import type { CancelFlowRecord, RewardRecord } from "./record-schemas.ts";
import type { Refusal } from "./refusal.ts";
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

/** The mirror of one shop before a record is applied. */
export interface MirrorView {
  ids: ShopIds;
  customer(id: string): CustomerRow | undefined;
  subscription(id: string): SubscriptionRow | undefined;
  order(id: string): OrderRow | undefined;
  hasOccurrence(type: OccurrenceType, id: string): boolean;
}

/** The rows that a record changes (none if it says nothing new) and the events of it; or why it cannot be applied. */
export type Decision = { rows: Row[]; events: Event[] } | { refused: Refusal };

export const NOTHING: Decision = { rows: [], events: [] };

/** An absent field keeps what is stored. */
export function keep<T>(given: T | undefined, stored: T): T {
  return given === undefined ? stored : given;
}

/** Compares rows as JSON. So the code makes every row with its fields in the order of its interface. */
export function differs(before: Row | undefined, after: Row): boolean {
  return before === undefined || JSON.stringify(before) !== JSON.stringify(after);
}

/** Refuses a record that names a contract which is not in the mirror. */
export function unknownContract(gid: string): { refused: Refusal } {
  return { refused: { field: "subscription", reason: `names a contract that is not in the mirror: ${gid}` } };
}
