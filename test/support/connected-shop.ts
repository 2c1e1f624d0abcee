import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import type { SyncCounts } from "../../src/domain/platform/sync.ts";
import type { LoadOptions } from "../../src/shopify/sync/full-sync.ts";
import type { SyncProgress } from "../../src/shopify/sync/progress.ts";
import type { InboxEntry } from "../../src/store/port/inbox.ts";
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

/** Loads the shop, without events unless they are wanted. */
export function load(
  { test, shop }: ConnectedShop,
  options: Partial<LoadOptions> = {},
  onProgress?: (progress: SyncProgress) => void,
): Promise<SyncCounts> {
  return test.app.platform.synchronizer.load(shop.shop, { events: false, ...options }, onProgress);
}

/** The shop's inbox items, newest first. */
export function inboxOf({ test, shop }: ConnectedShop): Promise<InboxEntry[]> {
  return test.app.store.inbox.list(shop.shop.id, { limit: 100 });
}

/** Moves the clock, and waits until everything that is due then is processed. */
export async function processedAfter(all: ConnectedShop, waitMs: number): Promise<void> {
  all.test.clock.ms += waitMs;
  all.test.app.processor.wake();
  await all.processed();
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
