import { expect, test } from "bun:test";
import { minorUnits } from "../../src/domain/money.ts";

test.each([
  ["12.50", "USD", 1250],
  ["12.5", "USD", 1250],
  ["12", "USD", 1200],
  ["12.500", "USD", 1250],
  ["0.0", "USD", 0],
  ["1250.0", "JPY", 1250],
  ["1.234", "KWD", 1234],
  ["1.2", "KWD", 1200],
  // As a float this would be 1,004,999,999,999,999.9.
  ["10049999999999.99", "USD", 1004999999999999],
  ["90071992547409.91", "USD", Number.MAX_SAFE_INTEGER],
])("%s %s is %d minor units", (amount, currency, units) => {
  expect(minorUnits(amount, currency)).toBe(units);
});

test.each([
  ["12.505", "USD"],
  ["1250.5", "JPY"],
  ["-1.00", "USD"],
  ["1e3", "USD"],
  ["", "USD"],
  ["1,000.00", "USD"],
  ["90071992547409.92", "USD"],
  [" 1", "USD"],
])("%p %s is no amount that can be kept exactly", (amount, currency) => {
  expect(minorUnits(amount, currency)).toBeUndefined();
});
