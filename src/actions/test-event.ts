import { SdsError } from "../domain/error.ts";
import { parseTopics, type Topic } from "../domain/events/event.ts";
import { sampleEvent } from "../domain/events/sample.ts";
import type { Shop } from "../domain/shop.ts";
import type { Store } from "../store/port/store.ts";
import { requireAccess } from "./access.ts";

/**
 * Queues a sample event for the shop's endpoint, even if the endpoint has not chosen the topic.
 * @returns the delivery's id
 * @throws SdsError `invalid` for the topic, `plan_required`, or `failed` where no endpoint is set
 */
export async function queueTestEvent(
  { webhooks, deliveries }: Pick<Store, "webhooks" | "deliveries">,
  { shop, topic: name }: { shop: Shop; topic: string },
  now: number,
): Promise<string> {
  const [topic] = parseTopics([name]) as [Topic];
  requireAccess(shop, "webhooks");
  const { url } = await webhooks.settings(shop.id);
  if (url === null) throw new SdsError("failed", "there is no endpoint yet: set its URL first");
  return deliveries.queueTest(shop, sampleEvent(topic), now);
}
