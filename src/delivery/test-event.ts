import { SdsError } from "../domain/error.ts";
import type { Topic } from "../domain/event.ts";
import { sampleEvent } from "../domain/sample.ts";
import { hasAccess, type Shop } from "../domain/shop.ts";
import type { DeliveryStore } from "../store/deliveries.ts";
import type { WebhookStore } from "../store/webhooks.ts";

/**
 * Queues a sample event for the shop's endpoint, whatever topics it has chosen.
 * @returns the delivery's id
 * @throws SdsError `plan_required`, or `failed` where there is no endpoint
 */
export async function queueTestEvent(store: { webhooks: WebhookStore; deliveries: DeliveryStore }, shop: Shop, topic: Topic, now: number): Promise<string> {
  if (!hasAccess(shop.plan)) throw new SdsError("plan_required", `the plan ${shop.plan} has no webhooks: it takes pro or free+addon`);
  const { url } = await store.webhooks.settings(shop.id);
  if (url === null) throw new SdsError("failed", "there is no endpoint yet: set its URL first");
  return store.deliveries.queueTest(shop, sampleEvent(topic), now);
}
