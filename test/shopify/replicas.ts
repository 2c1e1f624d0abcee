import type { ConnectedShop } from "../support/connected.ts";

/** How much later than the platform a late replica shows a change, in milliseconds. */
export const LAG_MS = 20_000;

/** Waits until the inbox is empty. @returns the largest number of attempts of an item */
export async function settled(all: ConnectedShop): Promise<number> {
  let attempts = 0;
  for (let items = await all.inbox(); items.length > 0; items = await all.inbox()) {
    attempts = Math.max(attempts, ...items.map((item) => item.attempts));
    if (attempts > 6) throw new Error(`the inbox does not settle: ${JSON.stringify(items)}`);
    const next = Math.min(...items.map(({ nextAttemptAt }) => nextAttemptAt ?? 0));
    await all.processedAfter(Math.max(1_000, next - all.test.clock.ms));
  }
  return attempts;
}

/** The mirrored row of an object of the platform. */
export async function row(all: ConnectedShop, resource: "subscriptions" | "orders", shopifyId: string) {
  return (await all.shop.all(resource)).find((each) => each["shopifyId"] === shopifyId);
}
