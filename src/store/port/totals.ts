import type { DeliveryStatus } from "../../domain/deliveries/delivery.ts";
import type { InboxStatus } from "./inbox.ts";

/** Counts of all shops together. Times in epoch milliseconds. */
export interface Totals {
  /** Deliveries that need something; the delivered ones are not counted. */
  deliveries: Record<Exclude<DeliveryStatus, "delivered">, number>;
  /** When the first waiting delivery is due, perhaps in the future; null if no delivery waits. */
  firstDueAt: number | null;
  inbox: Record<InboxStatus, number>;
  /** Shops whose connection the platform refuses. */
  refusedShops: number;
  /**
   * When the longest wait for a reconciliation began: when the mirror was last complete, or the shop was connected.
   * Ignores shops that the platform refuses; null without other shops.
   */
  reconciledAt: number | null;
}

export interface TotalsStore {
  /**
   * Counts in slices of a few milliseconds, in indexes that have only the counted rows. So the time grows with the
   * waiting, dead and failed rows, and not with the log. Rows that change meanwhile may be counted twice or missed.
   */
  read(now: number): Promise<Totals>;
}
