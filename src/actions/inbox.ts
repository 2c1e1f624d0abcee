import type { Store } from "../store/port/store.ts";
import { type ActorInShop, audited, noteInAudit } from "./audit.ts";

/** Makes an item of the inbox due now. @throws SdsError `not_found` */
export async function retryItem(
  store: Pick<Store, "audited">,
  by: ActorInShop,
  item: number,
  now: number,
): Promise<void> {
  const { inbox } = audited(store, by, now, "item.retried", { subject: String(item) });
  await inbox.retry(by.shop.id, item, now);
}

/** Makes all failed items due now. The entry of the audit list is written first. @returns the number of items */
export async function retryFailedItems(
  store: Pick<Store, "inbox" | "audit">,
  by: ActorInShop,
  now: number,
): Promise<number> {
  const { failed } = await store.inbox.count(by.shop.id);
  if (failed === 0) return 0;
  await noteInAudit(store, by, now, "item.retried", { after: { items: failed } });
  return store.inbox.retryFailed(by.shop.id, now);
}
