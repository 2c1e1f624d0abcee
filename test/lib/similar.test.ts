import { expect, test } from "bun:test";
import { didYouMean, nearest } from "../../src/lib/similar.ts";

const NAMES = ["order.charged", "order.failed", "first_name"];

test.each([
  ["order.charge", "order.charged"],
  ["ORDER.FAILED", "order.failed"],
  ["firstName", "first_name"],
  ["order.chargedd", "order.charged"],
  ["order", undefined],
  ["", undefined],
  ["order.charged".repeat(1_000), undefined],
])("%j probably means %j", (given, meant) => {
  expect(nearest(given, NAMES)).toBe(meant as "order.charged");
});

test("the nearest of several similar names is meant, and a text without one gets no hint", () => {
  expect(didYouMean("ab1", ["ab", "ab12", "ab1"])).toBe(" (did you mean ab1?)");
  expect(didYouMean("xyz", NAMES)).toBe("");
});
