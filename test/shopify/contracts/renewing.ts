import { type ConnectedShop, HOUR_MS, LINE, withMirroredContract } from "../../support/connected.ts";

export const WEEK_MS = 7 * 24 * HOUR_MS;

/** A contract with weekly cycles. The mirror has the contract. */
export function weekly() {
  return withMirroredContract({ interval: "WEEK", lines: [LINE], originOrder: false });
}

export function charge({ remote }: ConnectedShop, contract: string, cycle: number): string {
  return remote.succeedAttempt(remote.startAttempt(contract, cycle));
}

/** Returns the number, the status and the gid of each order, by ascending number. */
export async function renewals({ shop }: ConnectedShop) {
  const orders = await shop.all("orders");
  const byNumber = orders.toSorted((a, b) => Number(a["cycleNumber"]) - Number(b["cycleNumber"]));
  return byNumber.map(({ cycleNumber, status, shopifyId }) => [cycleNumber, status, shopifyId]);
}

/** Moves the clock by some weeks. */
export function wait({ test: program }: ConnectedShop, weeks: number): void {
  program.clock.ms += weeks * WEEK_MS;
}

/** Stores orders as an earlier version did: each order has the number of its cycle. */
export async function storeAsBefore(
  { test: { app, clock }, shop }: ConnectedShop,
  contract: string,
  gids: [number, string][],
) {
  const money = { lines: [], subtotalCents: 100, discountCents: 0, creditsCents: 0 };
  const billed = { status: "PAID" as const, billedAt: new Date(clock.ms).toISOString() };
  const ids = { type: "order" as const, subscription: contract, source: "recurring" as const };
  const records = gids.map(([cycleNumber, shopifyId]) => ({ ...ids, cycleNumber, shopifyId, ...money, ...billed }));
  await app.store.mirror.applyRecords([{ shop: shop.shop, records }], 0, []);
}
