import { SdsError } from "../domain/error.ts";
import { parseTopics, type Topic } from "../domain/events/event.ts";
import { sampleEvent } from "../domain/events/sample.ts";
import type { Store } from "../store/port/store.ts";
import { requireAccess } from "./access.ts";
import { type ActorInShop, audited } from "./audit.ts";

/** Queues a test event. @returns the delivery's id @throws SdsError `invalid`, `plan_required`, `failed` without URL */
export async function queueTestEvent(
  store: Pick<Store, "webhooks" | "audited">,
  { topic: name, ...by }: ActorInShop & { topic: string },
  now: number,
): Promise<string> {
  const { shop } = by;
  const [topic] = parseTopics([name]) as [Topic];
  requireAccess(shop, "webhooks");
  const { url } = await store.webhooks.settings(shop.id);
  if (url === null) throw new SdsError("failed", "there is no endpoint yet: set its URL first");
  const { deliveries } = audited(store, by, now, "test.sent", { subject: topic });
  return deliveries.queueTest(shop, sampleEvent(topic), now);
}
