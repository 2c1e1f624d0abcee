import { expect, test } from "bun:test";
import { type Evidence, joinEvidence } from "../../../src/shopify/contracts/evidence.ts";

const CYCLE = { skipped: false, expectedAt: 1 };
const EARLIER: Evidence = {
  revision: "9",
  updatedAt: 1_000,
  orders: { a: 1, b: 3 },
  charges: ["a"],
  attempts: ["x"],
  cycles: { 1: CYCLE, 2: CYCLE },
};
const LATER: Evidence = {
  revision: "10",
  updatedAt: 2_000,
  orders: { b: 2, c: 4 },
  charges: ["a", "b"],
  attempts: ["x", "y"],
  cycles: { 2: { ...CYCLE, skipped: true } },
};

test("joined evidence has the newest of each fact, in whatever order webhooks arrive", () => {
  const joined = {
    revision: "10",
    updatedAt: 2_000,
    orders: { a: 1, b: 3, c: 4 },
    charges: ["a", "b"],
    attempts: ["x", "y"],
  };
  expect(joinEvidence(EARLIER, LATER)).toEqual({ ...joined, cycles: { 1: CYCLE, 2: { ...CYCLE, skipped: true } } });
  expect(joinEvidence(LATER, EARLIER)).toEqual({ ...joined, cycles: { 1: CYCLE, 2: CYCLE } });
});

test("evidence stays as it is when it is joined with none", () => {
  expect(joinEvidence({}, LATER)).toEqual(LATER);
  expect(joinEvidence(LATER, {})).toEqual(LATER);
  expect(joinEvidence({}, {})).toEqual({ orders: {}, charges: [], attempts: [], cycles: {} });
});
