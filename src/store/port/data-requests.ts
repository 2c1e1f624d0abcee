import type { DataRequest } from "../../domain/people/data-request.ts";
import type { ShopRef } from "../../domain/shop.ts";

/**
 * Customers' requests for their data. The commit that removes their platform webhooks from the inbox adds them
 * (`Submission.dataRequests`).
 */
export interface DataRequestStore {
  /** Open requests, the first due first. */
  open(shopId: number): Promise<DataRequest[]>;
  /** Marks all open requests of a customer as answered. @returns their number */
  answer(shopId: number, customer: string, now: number): Promise<number>;
  /** Shops with open requests due before a time, with their number and the first one. */
  dueBefore(time: number): Promise<{ shop: ShopRef; count: number; first: DataRequest }[]>;
  /** Removes requests answered before a time. */
  forgetAnswered(before: number): Promise<void>;
}
