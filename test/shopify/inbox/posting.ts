import { type ConnectedShop, DOMAIN } from "../../support/connected.ts";

/** Makes a webhook that the platform sends at the start of a test. */
export function webhook(topic: string, body: string, id = crypto.randomUUID()) {
  return { shop: DOMAIN, topic, body, id, eventId: id, triggeredAt: "2026-03-01T12:00:00.000000000Z" };
}

/** Sends a webhook that the platform itself would not send now. */
export async function send(all: ConnectedShop, topic: string, payload: object): Promise<void> {
  await post(all, topic, payload);
  await all.processed();
}

/** Posts a webhook, without waiting for its processing. */
export async function post(
  all: ConnectedShop,
  topic: string,
  payload: object,
  { shop = DOMAIN, sentAt = all.test.clock.ms } = {},
): Promise<void> {
  const id = crypto.randomUUID();
  const triggeredAt = new Date(sentAt).toISOString();
  await all.send({ shop, topic, body: JSON.stringify(payload), id, eventId: id, triggeredAt });
}

export async function disconnect({ test, shop }: ConnectedShop): Promise<void> {
  await test.app.store.connections.disconnect(shop.shop.id, Number.MAX_SAFE_INTEGER);
}
