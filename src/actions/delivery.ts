import { signatureOf } from "../delivery/deliverer.ts";
import type { DeliveryKind } from "../domain/deliveries/delivery.ts";
import type { Shop } from "../domain/shop.ts";
import { counted } from "../lib/text.ts";
import type { Store } from "../store/port/store.ts";

type DeliveryStores = Pick<Store, "deliveries" | "webhooks">;

interface SignedDelivery {
  delivery: Awaited<ReturnType<Store["deliveries"]["show"]>>;
  /** The same for every attempt; null for a trigger, which has none. */
  signature: string | null;
}

/** One delivery with its body, signature and attempts. @throws SdsError `not_found` */
export async function findDelivery(
  { deliveries, webhooks }: DeliveryStores,
  shop: Shop,
  id: string,
): Promise<SignedDelivery> {
  const delivery = await deliveries.show(shop.id, id);
  return { delivery, signature: await signatureOf(webhooks, shop.id, delivery) };
}

/** Makes a delivery due now. @throws SdsError `not_found`, or `conflict` while an attempt is under way */
export async function retryDelivery(
  store: DeliveryStores,
  shop: Shop,
  id: string,
  now: number,
): Promise<SignedDelivery> {
  await store.deliveries.retry(shop.id, id, now);
  return findDelivery(store, shop, id);
}

/** Selects the dead deliveries that were queued since a time (epoch milliseconds), of one kind or of both. */
interface DeadFilter {
  since: number;
  kind?: DeliveryKind;
}

export async function countDeadDeliveries(
  { deliveries }: Pick<Store, "deliveries">,
  shop: Shop,
  { since, kind }: DeadFilter,
): Promise<number> {
  return deliveries.countDead(shop.id, since, kind);
}

/** Makes dead deliveries due now. @returns how many */
export async function retryDeadDeliveries(
  { deliveries }: Pick<Store, "deliveries">,
  shop: Shop,
  { since, kind }: DeadFilter,
  now: number,
): Promise<number> {
  return deliveries.retryDead(shop.id, since, now, kind);
}

/** "1 delivery", "2 deliveries". */
export function countedDeliveries(count: number): string {
  return counted(count, "delivery", "deliveries");
}

/** The message after a retry of dead deliveries. */
export function retryResultText(count: number): string {
  return `${countedDeliveries(count)} ${count === 1 ? "is" : "are"} sent again now.`;
}
