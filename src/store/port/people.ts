import type { MirroredShop } from "../../domain/shop.ts";

/** All stored data about a person, for the answer to a data request. */
export interface PersonExport {
  customer: unknown;
  subscriptions: unknown[];
  orders: unknown[];
  rewards: unknown[];
  cancelFlows: unknown[];
  /** Queued bodies about the person, sent or not, and receivers' answers. */
  deliveries: { id: string; kind: string; topic: string; createdAt: string; body: unknown; answers: string[] }[];
  /** Platform webhooks in the inbox that name the person. */
  inbox: { topic: string; receivedAt: string; body: string }[];
}

export interface PersonStore {
  /** Exports a person's data. @returns undefined for an unknown customer */
  export(shop: MirroredShop, gid: string): Promise<PersonExport | undefined>;
}
