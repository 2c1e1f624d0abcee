import { describe, expect, test } from "bun:test";
import type { Order } from "../../../src/domain/resources.ts";
import type { ContractNode } from "../../../src/shopify/api/operations/contracts.ts";
import type { CycleNode } from "../../../src/shopify/api/operations/cycles.ts";
import { areAllSoFar, type CycleReading } from "../../../src/shopify/contracts/cycle-reader.ts";
import { firstOpenCycle } from "../../../src/shopify/contracts/cycles.ts";

const DAYS_30_MS = 30 * 86_400_000;
const NOW = Date.UTC(2026, 2, 1);

function order(status: Order["status"], cycleNumber: number, ageMs = 0): Order {
  const billedAt = new Date(NOW - ageMs).toISOString();
  return { status, cycleNumber, billedAt, shopifyId: `gid://shopify/Order/${cycleNumber}` } as Order;
}

/** Makes the orders of the cycles from 1 on. */
function mirrored(...orders: [Order["status"], number?][]): Map<number, Order> {
  return new Map(orders.map(([status, ageMs], index) => [index + 1, order(status, index + 1, ageMs)]));
}

describe("the first cycle to read", () => {
  test.each<[string, Map<number, Order>, number]>([
    ["is 1 for a new contract", new Map(), 1],
    ["is the one after charged cycles", mirrored(["PAID"], ["RECOVERED"]), 3],
    ["is a declined cycle, because it can still be charged", mirrored(["PAID"], ["FAILED"], ["PAID"]), 2],
    ["is a pending cycle", mirrored(["PENDING"]), 1],
    ["is a skipped cycle, for 30 days", mirrored(["SKIPPED", DAYS_30_MS]), 1],
    ["is the one after a cycle skipped longer ago", mirrored(["SKIPPED", DAYS_30_MS + 1]), 2],
    ["is never the checkout", new Map([[0, order("PENDING", 0)]]), 1],
  ])("%s", (_title, orders, expected) => {
    expect(firstOpenCycle(orders, NOW - DAYS_30_MS)).toBe(expected);
  });
});

describe("the cycles up to now", () => {
  const WEEK_MS = 7 * 86_400_000;
  /** Weekly cycles. The cycle with number 2 starts now. */
  const cycles = (first: number, last: number) =>
    Array.from({ length: last - first + 1 }, (_, index) => {
      const cycleStartAt = new Date(NOW + (first + index - 2) * WEEK_MS).toISOString();
      return { cycleIndex: first + index, cycleStartAt } as CycleNode;
    });

  test.each<[string, CycleNode[], number | null, boolean]>([
    ["are incomplete without any cycle", [], null, false],
    ["are complete if the last cycle starts after now", cycles(1, 3), null, true],
    ["are incomplete if the last cycle starts now", cycles(1, 2), null, false],
    ["are complete if the last cycle is the contract's last", cycles(1, 2), 2, true],
    ["are incomplete without the first open cycle", cycles(2, 3), null, false],
  ])("%s", (_title, read, maxCycles, expected) => {
    const node = { status: "ACTIVE", billingPolicy: { maxCycles } } as ContractNode;
    const reading = { mirrored: new Map(), before: undefined } as unknown as CycleReading;
    expect(areAllSoFar(read, node, reading, NOW)).toBe(expected);
  });
});
