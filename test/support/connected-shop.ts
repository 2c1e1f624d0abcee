import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import type { ConnectedShop } from "./connected.ts";
import type { ContractInput } from "./platform/contract-changes.ts";
import type { LineInput } from "./platform/lines.ts";
import type { PlatformShop } from "./platform/shop.ts";

export const HOUR_MS = 3_600_000;

export const LINE: LineInput = {
  title: "House blend",
  price: "12.50",
  quantity: 2,
  variant: "gid://shopify/ProductVariant/11",
  product: "gid://shopify/Product/12",
};

/** Makes a contract at the platform, with a new customer unless one is given. @returns its gid */
export function createContract(remote: PlatformShop, fields: Partial<ContractInput> = {}): string {
  const customer = fields.customer ?? remote.createCustomer({ email: "a@example.com" });
  return remote.createContract({ lines: [LINE], ...fields, customer });
}

/** Gives the shop a webhook endpoint for all topics, so that every event is queued. */
export async function queueAllEvents({ test, shop }: ConnectedShop): Promise<void> {
  const endpoint = { url: "https://hooks.example.com/", topics: TOPIC_NAMES };
  await test.app.store.webhooks.set(shop.shop.id, endpoint, test.clock.now());
}

/** The topics of the queued events, the oldest first. */
export async function queuedTopics({ test, shop }: ConnectedShop): Promise<string[]> {
  const deliveries = await test.app.store.deliveries.list(shop.shop.id, { limit: 100 });
  return deliveries.map(({ topic }) => topic).toReversed();
}

/** The operations that were requested from the platform, the oldest first. */
export function operations({ platform }: ConnectedShop, from = 0): string[] {
  return platform.requests.slice(from).map(({ operation }) => operation);
}
