import { SdsError } from "../domain/error.ts";
import { parseTopics, type Topic } from "../domain/events/event.ts";
import { sampleEvent } from "../domain/events/sample.ts";
import type { Shop } from "../domain/shop.ts";
import type { Store } from "../store/port/store.ts";
import { requireAccess } from "./access.ts";

/** @returns the delivery's id @throws SdsError `invalid` for a topic, `plan_required`, `failed` without an endpoint */
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
