import type { DataRequest } from "../../domain/people/data-request.ts";
import type { ShopRef } from "../../domain/shop.ts";

/**
 * Customers' requests for their data. The requests arrive as platform webhooks. The commit that removes such a webhook
 * from the inbox also stores the request (`Submission.dataRequests`).
 */
export interface DataRequestStore {
  /** Returns open requests, sorted by due date. */
  open(shopId: number): Promise<DataRequest[]>;
  /** Marks all open requests of a customer as answered. @returns the number of marked requests */
  answer(shopId: number, customer: string, now: number): Promise<number>;
  /**
   * Returns shops with open requests due before a time. `count` is the number of these requests. `first` is the request
   * with the earliest due date.
   */
  dueBefore(time: number): Promise<{ shop: ShopRef; count: number; first: DataRequest }[]>;
  /** Removes requests that were answered before a time. */
  forgetAnswered(before: number): Promise<void>;
}
