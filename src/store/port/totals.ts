import type { DeliveryStatus } from "../../domain/deliveries/delivery.ts";
import type { InboxStatus } from "./inbox.ts";

/** Counts of all shops together. Times in epoch milliseconds. */
export interface Totals {
  /** Number of deliveries for each status except `delivered`. */
  deliveries: Record<Exclude<DeliveryStatus, "delivered">, number>;
  /** When the first waiting delivery is due, perhaps in the future; null if no delivery waits. */
  firstDueAt: number | null;
  inbox: Record<InboxStatus, number>;
  /** Shops whose connection the platform refuses. */
  refusedShops: number;
  /**
   * When the longest wait for a reconciliation began. A shop's wait begins when its mirror was last complete or when it
   * was connected, whichever is later. Ignores shops that the platform refuses; null if there are no other shops.
   */
  reconciledAt: number | null;
}

export interface TotalsStore {
  /**
   * Counts in slices of a few milliseconds. Reads indexes that have only the counted rows, so the size of the log does
   * not matter. A row that changes during the count can be counted twice or missed.
   */
  read(now: number): Promise<Totals>;
}
