import type { DeliveryStatus } from "../../domain/deliveries/delivery.ts";
import type { InboxStatus } from "./inbox.ts";

/** Counts of all shops together. Times in epoch milliseconds. */
export interface Totals {
  /** Deliveries that need something; the delivered ones are not counted. */
  deliveries: Record<Exclude<DeliveryStatus, "delivered">, number>;
  /** When the first waiting delivery is due, which may lie ahead; null if no delivery waits. */
  firstDueAt: number | null;
  inbox: Record<InboxStatus, number>;
  /** Shops whose connection the platform refuses. */
  refusedShops: number;
  /**
   * Up to when the mirror that waits longest for its reconciliation is complete, among the shops that the platform
   * accepts. null without such a shop.
   */
  reconciledAt: number | null;
}

export interface TotalsStore {
  /**
   * Counts in slices of a few milliseconds, in indexes that have nothing else. So the time grows with what waits, is
   * dead or failed, and not with the log. Rows that change meanwhile may be counted twice, or not at all.
   */
  read(now: number): Promise<Totals>;
}
