import { expect, test } from "bun:test";
import { afterDecline, parseRetryDays } from "../../src/domain/retry-plan.ts";

const AT = Date.parse("2026-03-01T12:00:00.000Z");

test.each([
  [1, "2026-03-02T12:00:00.000Z", false],
  [2, "2026-03-04T12:00:00.000Z", false],
  [3, "2026-03-06T12:00:00.000Z", false],
  [4, null, true],
  [9, null, true],
])("after decline %d of the plan 1,3,5", (declined, nextRetryAt, retriesExhausted) => {
  expect(afterDecline([1, 3, 5], declined, AT)).toEqual({ nextRetryAt, retriesExhausted });
});

test("without a declined payment the first wait begins; a plan without retries is always used up", () => {
  expect(afterDecline([1, 3], 0, AT)).toEqual({ nextRetryAt: "2026-03-02T12:00:00.000Z", retriesExhausted: false });
  expect(afterDecline([], 0, AT)).toEqual({ nextRetryAt: null, retriesExhausted: true });
});

test.each([
  ["1,3,5", [1, 3, 5]],
  [" 2 , 2", [2, 2]],
  ["none", []],
])("%p is a plan", (text, plan) => {
  expect(parseRetryDays(text)).toEqual(plan);
});

test.each(["", "0", "1,,3", "-1", "1.5", "366", "a", new Array(21).fill("1").join(",")])("%p is not a plan", (text) => {
  expect(() => parseRetryDays(text)).toThrow("is not a retry plan");
});
