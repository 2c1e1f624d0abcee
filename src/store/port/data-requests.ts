import type { DataRequest } from "../../domain/people/data-request.ts";
import type { ShopRef } from "../../domain/shop.ts";

/**
 * Customers' requests for their data. They are added with the commit in which their platform webhooks leave the inbox
 * (`Submission.dataRequests`).
 */
export interface DataRequestStore {
  /** Requests that are not answered, the first due first. */
  open(shopId: number): Promise<DataRequest[]>;
  /** Notes that all open requests of a customer are answered. @returns how many */
  answer(shopId: number, customer: string, now: number): Promise<number>;
  /** Shops with open requests that are due before a time: how many, and the first one. */
  dueBefore(time: number): Promise<{ shop: ShopRef; count: number; first: DataRequest }[]>;
  /** Forgets requests that were answered before a time. */
  forgetAnswered(before: number): Promise<void>;
}
