import { expect, test } from "bun:test";
import fc from "fast-check";
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
  expect(minorUnits(amount, currency)).toEqual({ units, isRounded: false });
});

test.each([
  ["12.505", "USD", 1250],
  ["12.515", "USD", 1252],
  ["12.5050000000000000001", "USD", 1251],
  ["12.504999", "USD", 1250],
  ["0.999", "USD", 100],
  ["1250.5", "JPY", 1250],
  ["1251.5", "JPY", 1252],
  ["1.2345", "KWD", 1234],
])("%s %s is rounded to %d minor units", (amount, currency, units) => {
  expect(minorUnits(amount, currency)).toEqual({ units, isRounded: true });
});

test("any amount is rounded to the nearest minor unit, and half a unit to the even number", () => {
  const digitsOf = { USD: 2, JPY: 0, KWD: 3 };
  const currency = fc.constantFrom("USD" as const, "JPY" as const, "KWD" as const);
  const fractions = fc.oneof(fc.stringMatching(/^\d{0,20}$/), fc.stringMatching(/^\d{0,4}50{0,16}$/));
  fc.assert(
    fc.property(fc.bigInt(0n, 10n ** 12n), fractions, currency, (whole, fraction, code) => {
      const read = minorUnits(fraction === "" ? `${whole}` : `${whole}.${fraction}`, code);
      // Computes the same with integers of any size, in units of 10^-20.
      const unit = 10n ** BigInt(20 - digitsOf[code]);
      const exact = BigInt(`${whole}${fraction.padEnd(20, "0")}`);
      const [below, twiceRest] = [exact / unit, (exact % unit) * 2n];
      const isUp = twiceRest > unit || (twiceRest === unit && below % 2n === 1n);
      expect(read).toEqual({ units: Number(below + (isUp ? 1n : 0n)), isRounded: twiceRest > 0n });
    }),
    { numRuns: 1_000 },
  );
});

test.each([
  ["-1.00", "USD"],
  ["-0.001", "USD"],
  ["1e3", "USD"],
  ["", "USD"],
  ["1,000.00", "USD"],
  ["90071992547409.92", "USD"],
  ["90071992547409.915", "USD"],
  [" 1", "USD"],
])("%p %s is not an amount", (amount, currency) => {
  expect(minorUnits(amount, currency)).toBeUndefined();
});
