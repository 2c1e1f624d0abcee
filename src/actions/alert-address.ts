import { type Actor, auditEntry } from "../domain/audit.ts";
import { isMailAddress } from "../domain/deliveries/smtp.ts";
import type { ShopRef } from "../domain/shop.ts";
import type { AlertAddress } from "../store/port/alerts.ts";
import type { Store } from "../store/port/store.ts";

interface ActorOfAlerts {
  shop: ShopRef;
  actor: Actor;
}

/** Somebody who opens a link in an e-mail, and presses the button on the page of that link. */
const READER: Actor = { role: "merchant", who: "link in an e-mail", from: null };

/** Adds an address, and sends a link to it. @returns "added", or why the address was not added */
export async function addAlertAddress(
  store: Pick<Store, "audited">,
  { shop, actor }: ActorOfAlerts,
  address: string,
  now: number,
): Promise<"added" | "known" | "full" | "too many" | "wrong"> {
  if (!isMailAddress(address)) return "wrong";
  const entry = auditEntry(actor, now, "alert_address.added", { subject: shortened(address) });
  return store.audited(shop.id, entry).alerts.addAddress(shop.id, address, now);
}

/** Removes an address. @param actor by default, the reader of an e-mail */
export async function removeAlertAddress(
  store: Pick<Store, "audited">,
  shop: ShopRef,
  { number, address }: AlertAddress,
  now: number,
  actor = READER,
): Promise<void> {
  const entry = auditEntry(actor, now, "alert_address.removed", { subject: shortened(address) });
  await store.audited(shop.id, entry).alerts.removeAddress(shop.id, number, now);
}

/** Confirms an address. @param hash of the token in the address's link */
export async function confirmAlertAddress(
  store: Pick<Store, "audited">,
  shop: ShopRef,
  address: AlertAddress,
  hash: Uint8Array,
  now: number,
): Promise<void> {
  const entry = auditEntry(READER, now, "alert_address.confirmed", { subject: shortened(address.address) });
  await store.audited(shop.id, entry).alerts.confirmAddress(hash, now);
}

/** Shortens an address to "a…@example.com", because the audit list is kept longer than the address. */
function shortened(address: string): string {
  return `${address.charAt(0)}…${address.slice(address.lastIndexOf("@"))}`;
}
