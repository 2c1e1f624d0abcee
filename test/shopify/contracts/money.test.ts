import { expect, spyOn, test } from "bun:test";
import fc from "fast-check";
import {
  type ChargedLine,
  contractLines,
  expectedMoney,
  minorUnits,
  orderMoney,
} from "../../../src/shopify/contracts/money.ts";
import { afterTest } from "../../support/cleanup.ts";
import { connected, LINE } from "../../support/connected.ts";
import { contractLine, euros, PRODUCT, VARIANT } from "../../support/platform-nodes.ts";

test("lines that name no product are left out, and those beyond 250", () => {
  const unnamed = [{ variantId: null }, { productId: null }, { quantity: 0 }].map(contractLine);
  expect(contractLines(unnamed)).toEqual([]);
  expect(contractLines([contractLine({ quantity: 1 })])).toHaveLength(1);
  expect(contractLines(Array.from({ length: 251 }, () => contractLine()))).toHaveLength(250);
});

test("the next order has the discounts of the contract's lines", () => {
  const lines = [contractLine({ lineDiscountedPrice: euros("20.01") }), contractLine({ variantId: null })];
  expect(expectedMoney(lines)).toMatchObject({ subtotalCents: 5000, discountCents: 499, creditsCents: 0 });
});

test("the next order has no discount below zero", () => {
  const lines = [contractLine({ lineDiscountedPrice: euros("25.01") })];
  expect(expectedMoney(lines)).toMatchObject({ subtotalCents: 2500, discountCents: 0 });
});

test.each(["-1", "-0.001", "much", null])("an amount like %s is refused", (amount) => {
  const refusal = { code: "bad_record", message: `the platform sent an invalid amount: ${amount} EUR` };
  const line = contractLine({ currentPrice: euros(amount as string) });
  expect(() => expectedMoney([line])).toThrow(expect.objectContaining(refusal));
});

test("amounts with fractions of a minor unit are rounded and noted", () => {
  const noted: string[] = [];
  const line = contractLine({ quantity: 1, currentPrice: euros("12.505"), lineDiscountedPrice: euros("12.495") });
  const money = expectedMoney([line], ({ amount }) => noted.push(amount));
  expect(money).toMatchObject({ subtotalCents: 1250, discountCents: 0, lines: [{ unitPriceCents: 1250 }] });
  expect(noted).toEqual(["12.505", "12.495"]);
});

test("an order counts each discount once, and store credit apart", () => {
  const discount = (amount: string, discountApplication: { title?: string; code?: string }) => ({
    allocatedAmountSet: { shopMoney: euros(amount) },
    discountApplication,
  });
  const line = (fields: Partial<ChargedLine>): ChargedLine => ({
    title: "Tea",
    quantity: 3,
    chargedQuantity: fields.quantity ?? 3,
    contract: null,
    variant: { id: VARIANT },
    product: { id: PRODUCT },
    originalUnitPriceSet: { shopMoney: euros("10") },
    discountAllocations: [],
    ...fields,
  });
  const lines = [
    line({ discountAllocations: [discount("1.5", { title: "Credit" }), discount("2", { title: "Summer" })] }),
    line({ quantity: 1, variant: null, discountAllocations: [discount("0.25", { code: "Credit" })] }),
  ];
  expect(orderMoney(lines, "Credit")).toEqual({
    lines: [{ variantId: VARIANT, productId: PRODUCT, title: "Tea", quantity: 3, unitPriceCents: 1000 }],
    subtotalCents: 4000,
    discountCents: 200,
    creditsCents: 175,
  });
  const { variant: _variant, product: _product, ...hidden } = line({});
  expect(orderMoney([hidden], "Credit").lines).toEqual([]);
  const many = Array.from({ length: 251 }, () => line({}));
  expect(orderMoney(many, "Credit").lines).toHaveLength(250);
});

test("a sum that is too large is refused", () => {
  const line = contractLine({ quantity: 1_000_000, currentPrice: euros("90000000000000") });
  const refusal = { code: "bad_record", message: expect.stringContaining("the platform's order is not valid:") };
  expect(() => expectedMoney([line])).toThrow(expect.objectContaining(refusal));
});

/**
 * Adds fractions of a cent to the amounts in every answer of the platform. The stand-in itself has only whole cents.
 */
function addFractions(): void {
  const { fetch } = globalThis;
  const withFractions = async (...args: Parameters<typeof fetch>) => {
    const response = await fetch(...args);
    const text = (await response.text()).replaceAll('"amount":"12.5"', '"amount":"12.505"');
    return new Response(text, { status: response.status });
  };
  const spy = spyOn(globalThis, "fetch").mockImplementation(withFractions as typeof fetch);
  afterTest(() => spy.mockRestore());
}

test("a contract with fractions of a cent is mirrored, and the log says once that they are rounded", async () => {
  addFractions();
  const all = await connected();
  for (let n = 0; n < 2; n += 1) all.createContract({ lines: [{ ...LINE, quantity: 1 }] });
  await all.deliverAll();
  expect(await all.shop.all("subscriptions")).toMatchObject([
    { lines: [{ unitPriceCents: 1250 }] },
    { lines: [{ unitPriceCents: 1250 }] },
  ]);
  expect((await all.shop.all("orders")).map(({ totalCents }) => totalCents)).toEqual([1250, 1250]);
  const warning = { level: "warn", amount: "12.505", currency: "USD" };
  expect(all.logged("fractions of a minor unit")).toMatchObject([warning]);
});

test.each([
  ["12.50", "USD", 1250],
  ["12.5", "USD", 1250],
  ["12", "USD", 1200],
  ["12.500", "USD", 1250],
  ["0.0", "USD", 0],
  ["1250.0", "JPY", 1250],
  ["1.234", "KWD", 1234],
  ["1.2", "KWD", 1200],
  // A float would give 1,004,999,999,999,999.9.
  ["10049999999999.99", "USD", 1004999999999999],
  ["90071992547409.91", "USD", Number.MAX_SAFE_INTEGER],
  // Intl refuses the first code, and does not know the others.
  ["12.5", "USDC", 1250],
  ["12.5", "XXX", 1250],
  ["12.5", "QQQ", 1250],
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

test.each([
  ["3000.0", "JPY", { from: 3000, to: 2013 }, 2013],
  ["1", "JPY", { from: 3000, to: 2013 }, 1],
  ["12.500", "KWD", { from: 12_500, to: 4063 }, 4063],
  // The next three amounts are 0.5, 1.5 and 2.5 cents before they are rounded.
  ["1", "JPY", { from: 2, to: 1 }, 0],
  ["3", "JPY", { from: 2, to: 1 }, 2],
  ["5", "JPY", { from: 2, to: 1 }, 2],
  // If this amount were rounded to yen first, the result would be 2 cents.
  ["1.5", "JPY", { from: 10, to: 9 }, 1],
  ["900719925474.99", "USD", { from: 7, to: 7 }, 90_071_992_547_499],
])("%s %s at the rate %p is %d", (amount, currency, rate, units) => {
  expect(minorUnits(amount, currency, rate)?.units).toBe(units);
});

test("any amount is rounded to the nearest minor unit, and half a unit to the even number", () => {
  const digitsOf = { USD: 2, JPY: 0, KWD: 3 };
  const currency = fc.constantFrom("USD" as const, "JPY" as const, "KWD" as const);
  const fractions = fc.oneof(fc.stringMatching(/^\d{0,20}$/), fc.stringMatching(/^\d{0,4}50{0,16}$/));
  fc.assert(
    fc.property(fc.bigInt(0n, 10n ** 12n), fractions, currency, (whole, fraction, code) => {
      const read = minorUnits(fraction === "" ? `${whole}` : `${whole}.${fraction}`, code);
      // Computes the expected result with bigints, in units of 1e-20.
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
