import type { Topic } from "../../domain/events/event.ts";

/** Where a shop's webhooks go, and which topics. */
export interface WebhookSettings {
  url: string | null;
  topics: Topic[];
}

export interface WebhookStore {
  settings(shopId: number): Promise<WebhookSettings>;
  /**
   * Sets what is given and keeps the rest. A shop's first signing secret is made with it.
   * @throws SdsError `not_found` for a removed shop
   */
  set(shopId: number, change: Partial<WebhookSettings>, now: number): Promise<WebhookSettings>;
  /** Removes URL and topics, so that no webhook is queued. The secrets stay, for deliveries that were queued before. */
  clear(shopId: number): Promise<void>;
  /**
   * The secret that signs what is queued now; made if there is none.
   * @throws SdsError `not_found` for a removed shop
   */
  secret(shopId: number, now: number): Promise<string>;
  /** The secret of one version. @throws SdsError `failed` where there is none */
  secretOf(shopId: number, version: number): Promise<string>;
  /** All secrets of the shop, newest first: older ones still sign older deliveries. */
  secrets(shopId: number): Promise<string[]>;
  /** Until when the former secret signs too; null where none does, now or later. */
  overlapEndsAt(shopId: number): Promise<number | null>;
  /**
   * Makes a new secret for what is queued from now on, and returns it. An earlier overlap ends with it.
   * @param overlapMs how long the former secret goes on making `webhook-signature` too, beside the new one
   * @throws SdsError `not_found` for a removed shop
   */
  rotateSecret(shopId: number, now: number, overlapMs?: number): Promise<string>;
}
