import type { Topic } from "../../domain/events/event.ts";

/** The endpoint and topics of a shop. */
export interface WebhookSettings {
  url: string | null;
  topics: Topic[];
}

export interface WebhookStore {
  settings(shopId: number): Promise<WebhookSettings>;
  /**
   * Changes the given settings. The first call also makes the signing secret.
   * @throws SdsError `not_found` for a removed shop
   */
  set(shopId: number, change: Partial<WebhookSettings>, now: number): Promise<WebhookSettings>;
  /** Removes URL and topics. Keeps the secrets, because queued deliveries need them. */
  clear(shopId: number): Promise<void>;
  /** Returns the current secret. The first call makes it. @throws SdsError `not_found` for a removed shop */
  secret(shopId: number, now: number): Promise<string>;
  /** @throws SdsError `failed` for an unknown version */
  secretOf(shopId: number, version: number): Promise<string>;
  /** Returns all secrets, newest first. Older secrets still sign older deliveries. */
  secrets(shopId: number): Promise<string[]>;
  /** Returns when the overlap of the previous secret ends; null without an overlap. */
  overlapEndsAt(shopId: number): Promise<number | null>;
  /**
   * Makes and returns a new secret, for deliveries queued from now on. Ends an earlier overlap.
   * @param overlapMs how long the previous secret also signs `webhook-signature`
   * @throws SdsError `not_found` for a removed shop
   */
  rotateSecret(shopId: number, now: number, overlapMs?: number): Promise<string>;
}
