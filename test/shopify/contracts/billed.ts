import { type ConnectedShop, DOMAIN, HOUR_MS } from "../../support/connected.ts";

export const DAY_MS = 24 * HOUR_MS;
export const MARCH = "2026-03-01T12:00:00Z";

export function nextBillingDate({ shop }: ConnectedShop): Promise<unknown> {
  return shop.all("subscriptions").then(([contract]) => contract?.["nextBillingDate"]);
}

/** Reads the mirrored order of a cycle. */
export async function orderOf({ shop }: ConnectedShop, cycleNumber: number, contract?: string) {
  const subscriptions = await shop.all("subscriptions");
  const contractId = subscriptions.find(({ shopifyId }) => shopifyId === contract)?.["id"];
  return (await shop.all("orders")).find(
    (order) => order["cycleNumber"] === cycleNumber && (contract === undefined || order["contractId"] === contractId),
  );
}

/** Calls `run`. @returns the points that the platform charged for its queries */
export async function pointsOf({ platform }: ConnectedShop, run: () => Promise<unknown>): Promise<number> {
  const before = platform.bucket(DOMAIN).spent;
  await run();
  return platform.bucket(DOMAIN).spent - before;
}

export function loadLater(all: ConnectedShop) {
  all.test.clock.ms += 60_000;
  return all.load();
}
