import type { ShopRef } from "../../domain/shop.ts";

/** Everything that is stored about a person, to answer their request. */
export interface PersonExport {
  customer: unknown;
  subscriptions: unknown[];
  orders: unknown[];
  rewards: unknown[];
  cancelFlows: unknown[];
  /** Bodies that were queued about the person, sent or not, and what receivers answered. */
  deliveries: { id: string; kind: string; topic: string; createdAt: string; body: unknown; answers: string[] }[];
  /** Platform webhooks in the inbox that name the person. */
  inbox: { topic: string; receivedAt: string; body: string }[];
}

export interface PersonStore {
  /** @returns undefined for a customer that is not in the mirror */
  export(shop: ShopRef, gid: string): Promise<PersonExport | undefined>;
}
