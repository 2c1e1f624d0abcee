import { describe, expect, test } from "bun:test";
import type { Order } from "../../../src/domain/resources.ts";
import { firstOpenCycle } from "../../../src/shopify/contracts/cycles.ts";

const DAY_MS = 86_400_000;
const NOW = Date.UTC(2026, 2, 1);

function order(status: Order["status"], cycleNumber: number, ageDays = 0): Order {
  const billedAt = new Date(NOW - ageDays * DAY_MS).toISOString();
  return { status, cycleNumber, billedAt, shopifyId: `gid://shopify/Order/${cycleNumber}` } as Order;
}

/** The orders of cycles 1 and up. */
function mirrored(...orders: [Order["status"], number?][]): Map<number, Order> {
  return new Map(orders.map(([status, ageDays], index) => [index + 1, order(status, index + 1, ageDays)]));
}

describe("the first cycle to read", () => {
  test.each<[string, Map<number, Order>, number]>([
    ["is 1 for a new contract", new Map(), 1],
    ["comes after charged ones", mirrored(["PAID"], ["RECOVERED"]), 3],
    ["may still be declined", mirrored(["PAID"], ["FAILED"], ["PAID"]), 2],
    ["may still be pending", mirrored(["PENDING"]), 1],
    ["may still be unskipped, for 30 days", mirrored(["SKIPPED", 30]), 1],
    ["comes after one that was skipped long ago", mirrored(["SKIPPED", 30.001]), 2],
    ["comes after the checkout in any case", new Map([[0, order("PENDING", 0)]]), 1],
  ])("%s", (_title, orders, expected) => {
    expect(firstOpenCycle(orders, [], NOW)).toBe(expected);
  });

  test("is the one of an order that changed, although it is charged", () => {
    const orders = mirrored(["PAID"], ["PAID"], ["PAID"]);
    expect(firstOpenCycle(orders, ["gid://shopify/Order/2", "gid://shopify/Order/3"], NOW)).toBe(2);
    expect(firstOpenCycle(orders, ["gid://shopify/Order/9"], NOW)).toBe(4);
  });

  test("is not the checkout, and not later than the first open one", () => {
    const checkout: [number, Order] = [0, order("PAID", 0)];
    expect(firstOpenCycle(new Map([checkout]), ["gid://shopify/Order/0"], NOW)).toBe(1);
    const orders = mirrored(["PENDING"], ["PAID"]);
    expect(firstOpenCycle(orders, ["gid://shopify/Order/2"], NOW)).toBe(1);
  });
});
