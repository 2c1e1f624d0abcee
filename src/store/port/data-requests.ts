import type { DataRequest } from "../../domain/people/data-request.ts";
import type { ShopRef } from "../../domain/shop.ts";

/**
 * Customers' requests for their data. The requests arrive as platform webhooks. The commit that removes such a webhook
 * from the inbox stores its request (`Submission.dataRequests`).
 */
export interface DataRequestStore {
  /** Returns open requests, sorted by due date. */
  open(shopId: number): Promise<DataRequest[]>;
  /** Marks all open requests of a customer as answered. @returns how many */
  answer(shopId: number, customer: string, now: number): Promise<number>;
  /**
   * Returns shops with open requests due before a time. `count` is the number of these requests. `first` is the request
   * with the earliest due date.
   */
  dueBefore(time: number): Promise<{ shop: ShopRef; count: number; first: DataRequest }[]>;
  /** Removes requests answered before a time. */
  forgetAnswered(before: number): Promise<void>;
}
