import type { Event } from "../../src/domain/events/event.ts";
import type { ShopRef } from "../../src/domain/shop.ts";
import type { Claim } from "../../src/store/port/deliveries.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { subscription } from "../support/records.ts";
import { addShop, chooseAllEvents, claim, commit, failed, HOUR, record, succeeded } from "./fixtures.ts";

export const event: Event = { topic: "order.charged", data: { cents: 5 } };
export const notFound = { name: "SdsError", code: "not_found" };

/** Adds a shop for which every event is queued. */
export async function shopWithEvents(store: Store, name?: string): Promise<ShopRef> {
  const shop = await addShop(store, name);
  await chooseAllEvents(store, shop);
  return shop;
}

/** Claims the due deliveries and ends them: dead, delivered, or retried in an hour. */
export async function end(
  store: Store,
  shop: ShopRef,
  how: "dead" | "delivered" | "retrying",
  now = START,
  share = 10_000,
): Promise<Claim[]> {
  const claims = await claim(store, shop, { now, share });
  await record(
    store,
    claims.map((each) => (how === "delivered" ? succeeded(each, now) : failed(each, now))),
    how === "retrying" ? [HOUR] : [],
  );
  return claims;
}

/** Makes a webhook and a trigger of each status, oldest first: delivered, dead, retrying, pending. */
export async function fill(store: Store, shop: ShopRef): Promise<void> {
  for (const [n, how] of (["delivered", "dead", "retrying"] as const).entries()) {
    await commit(store, shop, [subscription(n + 1)], START + n);
    await end(store, shop, how, START + n);
  }
  await commit(store, shop, [subscription(9)], START + 3);
}
