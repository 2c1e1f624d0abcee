import { createHmac } from "node:crypto";

export const API_VERSION = "2026-07";

export interface Webhook {
  shop: string;
  topic: string;
  /** Exactly as it is sent. */
  body: string;
  /** Names one delivery. */
  id: string;
  /** Shared by all webhooks of one action. */
  eventId: string;
  triggeredAt: string;
}

export interface SignedWebhook {
  headers: Record<string, string>;
  body: string;
}

export function signedWith(secret: string, webhook: Webhook, apiVersion = API_VERSION): SignedWebhook {
  const { shop, topic, body, id, eventId, triggeredAt } = webhook;
  const headers = {
    "Content-Type": "application/json",
    "X-Shopify-Topic": topic,
    "X-Shopify-Hmac-Sha256": createHmac("sha256", secret).update(body).digest("base64"),
    "X-Shopify-Shop-Domain": shop,
    "X-Shopify-API-Version": apiVersion,
    "X-Shopify-Webhook-Id": id,
    "X-Shopify-Event-Id": eventId,
    "X-Shopify-Triggered-At": triggeredAt,
  };
  return { headers, body };
}
