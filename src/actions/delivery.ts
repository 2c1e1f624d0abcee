import { signatureOf } from "../delivery/deliverer.ts";
import type { DeliveryKind } from "../domain/deliveries/delivery.ts";
import type { Shop } from "../domain/shop.ts";
import { counted } from "../lib/text.ts";
import type { Store } from "../store/port/store.ts";
import { type ActorInShop, audited, noteInAudit } from "./audit.ts";

type DeliveryStores = Pick<Store, "deliveries" | "webhooks">;

interface SignedDelivery {
  delivery: Awaited<ReturnType<Store["deliveries"]["show"]>>;
  /** The `X-Service-Signature` of the stored body; null for a trigger. A redaction can change body and signature. */
  signature: string | null;
}

/** Finds one delivery, with its body, signature and attempts. @throws SdsError `not_found` */
export async function findDelivery(store: DeliveryStores, shop: Shop, id: string): Promise<SignedDelivery> {
  const delivery = await store.deliveries.show(shop.id, id);
  return { delivery, signature: await signatureOf(store.webhooks, shop.id, delivery) };
}

/** Makes a delivery due now. @throws SdsError `not_found`, or `conflict` during an attempt */
export async function retryDelivery(
  store: DeliveryStores & Pick<Store, "audited">,
  by: ActorInShop,
  id: string,
  now: number,
): Promise<SignedDelivery> {
  await audited(store, by, now, "delivery.resent", { subject: id }).deliveries.retry(by.shop.id, id, now);
  return findDelivery(store, by.shop, id);
}

/**
 * Makes dead deliveries due now, in steps. The entry of the audit list is written before the first step.
 * @param since epoch milliseconds: deliveries that were queued earlier are skipped
 * @returns how many deliveries it made due
 */
export async function retryDeadDeliveries(
  store: Pick<Store, "deliveries" | "audit">,
  by: ActorInShop,
  { since = 0, kind }: { since?: number; kind?: DeliveryKind },
  now: number,
): Promise<number> {
  const dead = await store.deliveries.countDead(by.shop.id, since, kind);
  if (dead === 0) return 0;
  await noteInAudit(store, by, now, "deliveries.resent", { after: { deliveries: dead } });
  return store.deliveries.retryDead(by.shop.id, since, now, kind);
}

/** Returns a message that says how many dead deliveries are sent again. */
export function retryResultText(count: number): string {
  return `${counted(count, "delivery", "deliveries")} ${count === 1 ? "is" : "are"} sent again now.`;
}
