import { signatureOf } from "../delivery/deliverer.ts";
import type { Shop } from "../domain/shop.ts";
import { counted } from "../lib/text.ts";
import type { Store } from "../store/port/store.ts";

type DeliveryStores = Pick<Store, "deliveries" | "webhooks">;

interface SignedDelivery {
  delivery: Awaited<ReturnType<Store["deliveries"]["show"]>>;
  /** The signature of every attempt; null for a trigger. */
  signature: string | null;
}

/** Finds one delivery, with its body, signature and attempts. @throws SdsError `not_found` */
export async function findDelivery(store: DeliveryStores, shop: Shop, id: string): Promise<SignedDelivery> {
  const delivery = await store.deliveries.show(shop.id, id);
  return { delivery, signature: await signatureOf(store.webhooks, shop.id, delivery) };
}

/** Makes a delivery due now. @throws SdsError `not_found`, or `conflict` during an attempt */
export async function retryDelivery(
  store: DeliveryStores,
  shop: Shop,
  id: string,
  now: number,
): Promise<SignedDelivery> {
  await store.deliveries.retry(shop.id, id, now);
  return findDelivery(store, shop, id);
}

/** Message that tells how many dead deliveries are sent again. */
export function retryResultText(count: number): string {
  return `${counted(count, "delivery", "deliveries")} ${count === 1 ? "is" : "are"} sent again now.`;
}
