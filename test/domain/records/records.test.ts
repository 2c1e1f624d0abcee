import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseRecord, parseRecordText } from "../../../src/domain/records/records.ts";
import { cancelFlow, customer, gid, line, order, reward, subscription } from "../../support/records.ts";

const MISSPELT_ID = "shopifyID: is not a field of this record (did you mean shopifyId?)";

function refusal(value: unknown): string {
  const parsed = parseRecord(value);
  return "refused" in parsed ? `${parsed.refused.field}: ${parsed.refused.reason}` : "accepted";
}

function taken(value: unknown): unknown {
  const parsed = parseRecord(value);
  return "record" in parsed ? parsed.record : refusal(value);
}

describe("a record is accepted", () => {
  test.each([
    ["customer", customer(1)],
    [
      "customer with everything",
      customer(1, {
        email: "a@b.c",
        firstName: "A",
        lastName: null,
        marketingConsent: true,
        creditsCents: 5,
        loyaltyTier: 2,
      }),
    ],
    ["subscription", subscription(1)],
    [
      "subscription with everything",
      subscription(1, { cancelledAt: null, cyclesCompleted: 3, churnType: "voluntary", revision: "9".repeat(30) }),
    ],
    ["order", order(1, 1)],
    ["checkout order", order(1, 0, { source: "checkout", shopifyId: null })],
    [
      "reward with fields of its own",
      reward("r", { credit_cents: 5, discount_code: "X", tiers: [{ name: "gold", at: 1.5 }] }),
    ],
    ["cancel_flow", cancelFlow("c")],
    ["ids beyond 2^53", customer(1, { shopifyId: gid.customer("70640550693037008400") })],
  ])("%s", (_name, record) => {
    expect(taken(record)).toEqual(record);
  });

  test("with dates brought to the millisecond, a year as twelve months and lines in one order of keys", () => {
    const { variantId, ...others } = line;
    const year = {
      ...subscription(1),
      interval: "YEAR",
      intervalCount: 2,
      startedAt: "2026-01-01T00:00:00Z",
      lines: [{ ...others, variantId }],
    };
    const record = taken(year) as Record<string, unknown>;
    expect(record).toEqual({ ...subscription(1), interval: "MONTH", intervalCount: 24 });
    expect(JSON.stringify(record["lines"])).toBe(JSON.stringify([line]));
  });
});

describe("a record is refused, and the refusal names the field", () => {
  const without = (record: object, field: string) =>
    Object.fromEntries(Object.entries(record).filter(([name]) => name !== field));
  const withLine = (fields: object) => ({ ...subscription(1), lines: [line, { ...line, ...fields }] });

  test.each<[string, unknown, string]>([
    ["no object", [], ": must be a JSON object"],
    ["null", null, ": must be a JSON object"],
    ["no type", {}, "type: must be one of customer, subscription, order, reward, cancel_flow"],
    ["another type", { type: "refund" }, "type: must be one of customer, subscription, order, reward, cancel_flow"],
    [
      "the internal type",
      { type: "redaction", shopifyId: gid.customer(1), asOf: 1 },
      "type: must be one of customer, subscription, order, reward, cancel_flow",
    ],
    ["a missing field", without(subscription(1), "status"), "status: is missing"],
    ["a misspelt field", { ...customer(1), emial: "x" }, "emial: is not a field of this record (did you mean email?)"],
    [
      "a field with a long name",
      { ...customer(1), ["x".repeat(300)]: 1 },
      `${"x".repeat(100)}: is not a field of this record`,
    ],
    ["an internal field", { ...customer(1), asOf: 1 }, "asOf: is not a field of this record"],
    [
      "a bare number for a gid",
      customer(1, { shopifyId: "1" }),
      "shopifyId: must be a gid like gid://shopify/Customer/123",
    ],
    [
      "another object's gid",
      customer(1, { shopifyId: gid.order(1) }),
      "shopifyId: must be a gid like gid://shopify/Customer/123",
    ],
    [
      "a gid with a tail",
      customer(1, { shopifyId: `${gid.customer(1)}\n` }),
      "shopifyId: must be a gid like gid://shopify/Customer/123",
    ],
    [
      "a status of nobody",
      { ...subscription(1), status: "active" },
      "status: must be one of ACTIVE, PAUSED, CANCELLED, PAYMENT_FAILED, EXPIRED",
    ],
    [
      "no interval count",
      subscription(1, { intervalCount: 0 }),
      "intervalCount: must be a whole number from 1 to 100000",
    ],
    [
      "a date that is none",
      subscription(1, { startedAt: "2026-02-30T00:00:00Z" }),
      "startedAt: must be an ISO 8601 date in UTC, like 2026-01-31T09:30:00.000Z",
    ],
    [
      "a date that is empty",
      subscription(1, { nextBillingDate: "" }),
      "nextBillingDate: must be an ISO 8601 date in UTC, like 2026-01-31T09:30:00.000Z, or null",
    ],
    [
      "null for a field that has to be",
      { ...subscription(1), startedAt: null },
      "startedAt: must be an ISO 8601 date in UTC, like 2026-01-31T09:30:00.000Z",
    ],
    [
      "a revision in a number",
      { ...subscription(1), revision: 5 },
      "revision: must be a decimal number in a string, or null",
    ],
    [
      "a float for money",
      withLine({ unitPriceCents: 12.5 }),
      "lines[1].unitPriceCents: must be a whole amount in minor units, 0 or more and a safe integer",
    ],
    [
      "money in a string",
      withLine({ unitPriceCents: "12" }),
      "lines[1].unitPriceCents: must be a whole amount in minor units, 0 or more and a safe integer",
    ],
    [
      "no quantity",
      withLine({ quantity: 0 }),
      `lines[1].quantity: must be a whole number from 1 to ${Number.MAX_SAFE_INTEGER}`,
    ],
    [
      "an unsafe amount",
      order(1, 1, { subtotalCents: 2 ** 53 }),
      "subtotalCents: must be a whole amount in minor units, 0 or more and a safe integer",
    ],
    [
      "a negative amount",
      order(1, 1, { discountCents: -1 }),
      "discountCents: must be a whole amount in minor units, 0 or more and a safe integer",
    ],
    [
      "a total below zero",
      order(1, 1, { discountCents: 2000, creditsCents: 501 }),
      "totalCents: would be below zero: subtotalCents less discountCents less creditsCents",
    ],
    [
      "a checkout order that renews",
      order(1, 1, { source: "checkout" }),
      "cycleNumber: must be 0 for a checkout order and 1 or more for a recurring one",
    ],
    [
      "a renewal in no cycle",
      order(1, 0),
      "cycleNumber: must be 0 for a checkout order and 1 or more for a recurring one",
    ],
    [
      "a long string",
      customer(1, { email: "x".repeat(1025) }),
      "email: must be a well-formed string of at most 1024 characters, without U+0000, or null",
    ],
    [
      "half a character",
      customer(1, { firstName: "\ud83d" }),
      "firstName: must be a well-formed string of at most 1024 characters, without U+0000, or null",
    ],
    [
      "U+0000 in a string",
      customer(1, { lastName: "a\0b" }),
      "lastName: must be a well-formed string of at most 1024 characters, without U+0000, or null",
    ],
    [
      "U+0000 in a line's title",
      withLine({ title: "\0" }),
      "lines[1].title: must be a well-formed string of at most 1024 characters, without U+0000",
    ],
    [
      "U+0000 in an order's reason",
      order(1, 1, { reason: "\0" }),
      "reason: must be a well-formed string of at most 1024 characters, without U+0000, or null",
    ],
    ["U+0000 in an id", cancelFlow("\0"), "id: must be a well-formed string of 1 to 1024 characters, without U+0000"],
    [
      "U+0000 deep in a reward",
      reward("r", { note: [{ text: "\0" }] }),
      "note: must hold well-formed strings of at most 1024 characters, without U+0000, and exact numbers, at most 8 levels deep",
    ],
    [
      "U+0000 in a key of a reward's field",
      reward("r", { note: { "\0": 1 } }),
      "note: must hold well-formed strings of at most 1024 characters, without U+0000, and exact numbers, at most 8 levels deep",
    ],
    ["a field in another case", { ...without(subscription(1), "shopifyId"), shopifyID: gid.contract(1) }, MISSPELT_ID],
    ["a field in another case beside the right one", { ...subscription(1), shopifyID: "x" }, MISSPELT_ID],
    [
      "an optional field with a letter off",
      { ...customer(1), firsName: "Ada" },
      "firsName: is not a field of this record (did you mean firstName?)",
    ],
    [
      "a field in snake case",
      { ...order(1, 1), billed_at: 1 },
      "billed_at: is not a field of this record (did you mean billedAt?)",
    ],
    [
      "a line's field in snake case",
      withLine({ unit_price_cents: 1 }),
      "lines[1].unit_price_cents: is not a field of this record (did you mean unitPriceCents?)",
    ],
    [
      "a reward's field in another case",
      reward("r", { customerID: gid.customer(1) }),
      "customerID: is not a field of this record (did you mean customer?)",
    ],
    ["a field with a slash in its name", { ...customer(1), "a/b~c": 1 }, "a/b~c: is not a field of this record"],
    ["a field like no other", { ...customer(1), shoeSize: 9 }, "shoeSize: is not a field of this record"],
    [
      "many lines",
      subscription(1, { lines: new Array(251).fill(line) }),
      "lines: must be an array of at most 250 line items",
    ],
    ["a line that is none", { ...subscription(1), lines: [1] }, "lines[0]: must be a line item"],
    ["a reward with no id", reward(""), "id: must be a well-formed string of 1 to 1024 characters, without U+0000"],
    [
      "a reward's field in another case",
      reward("r", { creditCents: 5 }),
      "creditCents: must have a name in snake_case",
    ],
    [
      "a reward's prototype",
      JSON.parse('{"type":"reward","id":"r","source":"streak","customer":"gid://shopify/Customer/1","__proto__":{}}'),
      "__proto__: must have a name in snake_case",
    ],
    [
      "a reward that names the internal customer",
      reward("r", { customer_id: "cus_x" }),
      "customer_id: is set by the service: name the customer in `customer`",
    ],
    [
      "a reward's number beyond all",
      reward("r", { credit_cents: Number.POSITIVE_INFINITY }),
      "credit_cents: must hold well-formed strings of at most 1024 characters, without U+0000, and exact numbers, at most 8 levels deep",
    ],
    [
      "a reward's unsafe number",
      reward("r", { credit_cents: 2 ** 53 }),
      "credit_cents: must hold well-formed strings of at most 1024 characters, without U+0000, and exact numbers, at most 8 levels deep",
    ],
  ])("%s", (_name, value, expected) => {
    expect(refusal(value)).toBe(expected);
  });

  test("text that is not JSON, without quoting it", () => {
    expect(parseRecordText('{"email":"bob@example.com"')).toEqual({
      refused: { field: "", reason: "is not valid JSON" },
    });
  });
});

/** Arrays in arrays, with this many levels. */
function nested(levels: number): unknown {
  return levels === 0 ? "end" : [nested(levels - 1)];
}

test("a reward's field may be 8 levels deep and no deeper", () => {
  expect(refusal(reward("r", { note: nested(7) }))).toBe("accepted");
  expect(refusal(reward("r", { note: nested(8) }))).toStartWith("note: must hold");
});

test("250 lines and strings of 1,024 characters are accepted", () => {
  const long = { ...line, title: "😀".repeat(1024) };
  const record = subscription(1, { lines: [...new Array(230).fill(line), ...new Array(20).fill(long)] });
  expect(taken(record)).toEqual(record);
});

test("no JSON value makes the parser throw", () => {
  fc.assert(
    fc.property(
      fc.constantFrom("customer", "subscription", "order", "reward", "cancel_flow"),
      fc.dictionary(fc.string(), fc.jsonValue()),
      (type, fields) => {
        expect(["record", "refused"]).toContain(Object.keys(parseRecord({ ...fields, type }))[0] as string);
      },
    ),
  );
});
