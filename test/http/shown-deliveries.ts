import type { Topic } from "../../src/domain/events/event.ts";
import type { Shop } from "../../src/domain/shop.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";

export const SCRIPT = "<script>alert(1)</script>";
export const SHOWN_SCRIPT = "&lt;script>alert(1)&lt;/script>";
export const HOOK = "https://hooks.example.com/in?a=1";

/** Queues test events, a millisecond apart. @returns their ids, newest first */
export async function queueTests({ deliveries }: Store, shop: Shop, topics: readonly Topic[]): Promise<string[]> {
  const ids: string[] = [];
  for (const [index, topic] of topics.entries())
    ids.unshift(await deliveries.queueTest(shop, { topic, data: {} }, START + 1 + index));
  return ids;
}

/** The ids of the rows of a log, in their order. */
export function rowsOf(page: string): string[] {
  return [...page.matchAll(/<tr id="last-(whd_\w+)"/g)].map(([, id = ""]) => id);
}
