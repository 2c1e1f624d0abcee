import type { MirroredShop } from "../../src/domain/shop.ts";
import type { Receipt } from "../../src/store/port/inbox.ts";
import type { Store } from "../../src/store/port/store.ts";
import { START } from "../support/app.ts";
import { receipt, receiveAll } from "./fixtures.ts";

/** Names a shop's queue of platform webhooks. */
export const queue = (shop: MirroredShop, needsPlatform = true) => ({ shopId: shop.id, needsPlatform });

/** Receives webhooks without ids, one for each subject. @returns their numbers */
export async function receive(
  store: Store,
  shop: MirroredShop,
  subjects: readonly string[],
  fields: Partial<Receipt> = {},
  now = START,
): Promise<number[]> {
  await receiveAll(
    store,
    subjects.map((subject) => receipt(shop, null, { subject, ...fields })),
    now,
  );
  const items = await store.inbox.list(shop.id, { limit: subjects.length });
  return items.map(({ number }) => number).toReversed();
}

/** The subject of each item. */
export const subjectsOf = (items: readonly { subject: string }[]) => items.map(({ subject }) => subject);
