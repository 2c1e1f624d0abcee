import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseRecord, parseRecordText } from "../../../src/domain/records/records.ts";
import { cancelFlow, customer, gid, line, order, reward, subscription } from "../../support/records.ts";

const TYPE_RULE = "type: must be one of customer, subscription, order, reward, cancel_flow, custom_field";
const GID_RULE = "shopifyId: must be a gid like gid://shopify/Customer/123";
const DATE_RULE = "must be an ISO 8601 date in UTC, like 2026-01-31T09:30:00.000Z";
const CENTS_RULE = "must be a whole amount in minor units, 0 or more and a safe integer";
const CYCLE_RULE = "cycleNumber: must be 0 for a checkout order and 1 or more for a recurring one";
const TEXT_RULE = "must be a well-formed string of at most 1024 characters, without U+0000";
const ID_RULE = "id: must be a well-formed string of 1 to 1024 characters, without U+0000";
const REWARD_RULE =
  "must hold well-formed strings of at most 1024 characters, without U+0000, and exact numbers, at most 8 levels deep";
const UNKNOWN = "is not a field of this record";
const MISSPELT_ID = `shopifyID: ${UNKNOWN} (did you mean shopifyId?)`;

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

  test("with milliseconds in dates, twelve months for a year, and lines in one order of keys", () => {
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
    ["an array", [], ": must be a JSON object"],
    ["null", null, ": must be a JSON object"],
    ["no type", {}, TYPE_RULE],
    ["another type", { type: "refund" }, TYPE_RULE],
    ["the internal type", { type: "redaction", shopifyId: gid.customer(1), asOf: 1 }, TYPE_RULE],
    ["a missing field", without(subscription(1), "status"), "status: is missing"],
    ["a field with two letters swapped", { ...customer(1), emial: "x" }, `emial: ${UNKNOWN} (did you mean email?)`],
    ["a field with a long name", { ...customer(1), ["x".repeat(300)]: 1 }, `${"x".repeat(100)}: ${UNKNOWN}`],
    ["an internal field", { ...customer(1), asOf: 1 }, `asOf: ${UNKNOWN}`],
    ["a bare number for a gid", customer(1, { shopifyId: "1" }), GID_RULE],
    ["another object's gid", customer(1, { shopifyId: gid.order(1) }), GID_RULE],
    ["a gid with a tail", customer(1, { shopifyId: `${gid.customer(1)}\n` }), GID_RULE],
    [
      "an unknown status",
      { ...subscription(1), status: "active" },
      "status: must be one of ACTIVE, PAUSED, CANCELLED, PAYMENT_FAILED, EXPIRED",
    ],
    [
      "no interval count",
      subscription(1, { intervalCount: 0 }),
      "intervalCount: must be a whole number from 1 to 100000",
    ],
    ["a day that does not exist", subscription(1, { startedAt: "2026-02-30T00:00:00Z" }), `startedAt: ${DATE_RULE}`],
    ["an empty date", subscription(1, { nextBillingDate: "" }), `nextBillingDate: ${DATE_RULE}, or null`],
    ["null for a required field", { ...subscription(1), startedAt: null }, `startedAt: ${DATE_RULE}`],
    [
      "a revision in a number",
      { ...subscription(1), revision: 5 },
      "revision: must be a decimal number in a string, or null",
    ],
    ["a float for money", withLine({ unitPriceCents: 12.5 }), `lines[1].unitPriceCents: ${CENTS_RULE}`],
    ["money in a string", withLine({ unitPriceCents: "12" }), `lines[1].unitPriceCents: ${CENTS_RULE}`],
    [
      "no quantity",
      withLine({ quantity: 0 }),
      `lines[1].quantity: must be a whole number from 1 to ${Number.MAX_SAFE_INTEGER}`,
    ],
    ["an unsafe amount", order(1, 1, { subtotalCents: 2 ** 53 }), `subtotalCents: ${CENTS_RULE}`],
    ["a negative amount", order(1, 1, { discountCents: -1 }), `discountCents: ${CENTS_RULE}`],
    [
      "a total below zero",
      order(1, 1, { discountCents: 2000, creditsCents: 501 }),
      "totalCents: would be below zero: subtotalCents less discountCents less creditsCents",
    ],
    ["a checkout order that renews", order(1, 1, { source: "checkout" }), CYCLE_RULE],
    ["a renewal in cycle 0", order(1, 0), CYCLE_RULE],
    ["a long string", customer(1, { email: "x".repeat(1025) }), `email: ${TEXT_RULE}, or null`],
    ["half a surrogate pair", customer(1, { firstName: "\ud83d" }), `firstName: ${TEXT_RULE}, or null`],
    ["U+0000 in a string", customer(1, { lastName: "a\0b" }), `lastName: ${TEXT_RULE}, or null`],
    ["U+0000 in a line's title", withLine({ title: "\0" }), `lines[1].title: ${TEXT_RULE}`],
    ["U+0000 in an order's reason", order(1, 1, { reason: "\0" }), `reason: ${TEXT_RULE}, or null`],
    ["U+0000 in an id", cancelFlow("\0"), ID_RULE],
    ["U+0000 deep in a reward", reward("r", { note: [{ text: "\0" }] }), `note: ${REWARD_RULE}`],
    ["U+0000 in a key of a reward's field", reward("r", { note: { "\0": 1 } }), `note: ${REWARD_RULE}`],
    ["a field in another case", { ...without(subscription(1), "shopifyId"), shopifyID: gid.contract(1) }, MISSPELT_ID],
    ["a field in another case beside the right one", { ...subscription(1), shopifyID: "x" }, MISSPELT_ID],
    [
      "an optional field with a letter off",
      { ...customer(1), firsName: "Ada" },
      `firsName: ${UNKNOWN} (did you mean firstName?)`,
    ],
    ["a field in snake case", { ...order(1, 1), billed_at: 1 }, `billed_at: ${UNKNOWN} (did you mean billedAt?)`],
    [
      "a line's field in snake case",
      withLine({ unit_price_cents: 1 }),
      `lines[1].unit_price_cents: ${UNKNOWN} (did you mean unitPriceCents?)`,
    ],
    [
      "a reward's field in another case",
      reward("r", { customerID: gid.customer(1) }),
      `customerID: ${UNKNOWN} (did you mean customer?)`,
    ],
    ["a field with a slash in its name", { ...customer(1), "a/b~c": 1 }, `a/b~c: ${UNKNOWN}`],
    ["a field without a similar name", { ...customer(1), shoeSize: 9 }, `shoeSize: ${UNKNOWN}`],
    [
      "many lines",
      subscription(1, { lines: new Array(251).fill(line) }),
      "lines: must be an array of at most 250 line items",
    ],
    ["a number as a line", { ...subscription(1), lines: [1] }, "lines[0]: must be a line item"],
    ["a reward with no id", reward(""), ID_RULE],
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
      "an infinite number of a reward",
      reward("r", { credit_cents: Number.POSITIVE_INFINITY }),
      `credit_cents: ${REWARD_RULE}`,
    ],
    ["a reward's unsafe number", reward("r", { credit_cents: 2 ** 53 }), `credit_cents: ${REWARD_RULE}`],
  ])("%s", (_name, value, expected) => {
    expect(refusal(value)).toBe(expected);
  });

  test("invalid JSON is not quoted", () => {
    expect(parseRecordText('{"email":"bob@example.com"')).toEqual({
      refused: { field: "", reason: "is not valid JSON" },
    });
  });
});

/** Nests a text this many times. */
function nested(levels: number, within: (inner: unknown) => unknown): unknown {
  return levels === 0 ? "end" : within(nested(levels - 1, within));
}

test.each<[string, (inner: unknown) => unknown]>([
  ["arrays", (inner) => [inner]],
  ["objects", (inner) => ({ inner })],
])("a reward's field may be 8 levels deep, not 9: %s", (_name, within) => {
  expect(refusal(reward("r", { note: nested(7, within) }))).toBe("accepted");
  expect(refusal(reward("r", { note: nested(8, within) }))).toStartWith("note: must hold");
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

const FULL_RECORDS: Record<string, unknown>[] = [
  customer(1, { email: "a@b.c", firstName: "A", lastName: "B" }),
  subscription(1, {
    cancelledAt: "2026-02-01T00:00:00.000Z",
    churnType: "voluntary",
    revision: "12",
    nextBillingDate: "2026-02-01T00:00:00.000Z",
  }),
  order(1, 1, { reason: "x", nextRetryAt: "2026-02-01T00:00:00.000Z" }),
  reward("r", { customer: gid.customer(1), note: "n", deep: { list: ["x", { text: "y" }] } }),
  cancelFlow("c", { reason_id: "a", offer_type: "b" }),
];

/** Yields copies of the value. Each has U+0000 in a different text or name. */
function* withNul(value: unknown): Generator<unknown> {
  if (typeof value === "string") yield* [`${value}\0`, `\0${value}`, "\0"];
  else if (Array.isArray(value))
    for (const [index, item] of value.entries()) for (const changed of withNul(item)) yield value.with(index, changed);
  else if (typeof value === "object" && value !== null)
    for (const [key, inner] of Object.entries(value)) {
      for (const changed of withNul(inner)) yield { ...value, [key]: changed };
      yield { ...value, [`${key}\0`]: inner };
    }
}

test.each(FULL_RECORDS)(
  "U+0000 is refused in every text of a record (%p), because PostgreSQL cannot store it",
  (record) => {
    expect(parseRecord(record)).toHaveProperty("record");
    const variants = [...withNul(record)];
    expect(variants.length).toBeGreaterThan(10);
    for (const variant of variants) expect({ variant, ...parseRecord(variant) }).toHaveProperty("refused");
  },
);
