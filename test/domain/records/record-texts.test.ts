import { expect, test } from "bun:test";
import { parseRecord } from "../../../src/domain/records/records.ts";
import { cancelFlow, customer, gid, order, reward, subscription } from "../../support/records.ts";

const DATE = "2026-02-01T00:00:00.000Z";
const RECORDS: Record<string, unknown>[] = [
  customer(1, { email: "a@b.c", firstName: "A", lastName: "B" }),
  subscription(1, { cancelledAt: DATE, churnType: "voluntary", revision: "12", nextBillingDate: DATE }),
  order(1, 1, { reason: "x", nextRetryAt: DATE }),
  reward("r", { customer: gid.customer(1), note: "n", deep: { list: ["x", { text: "y" }] } }),
  cancelFlow("c", { reason_id: "a", offer_type: "b" }),
];

/** The same value with U+0000 in one of its texts or names, each in turn. */
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

test.each(RECORDS)("U+0000 is refused in every text of a record (%p), because PostgreSQL cannot store it", (record) => {
  expect(parseRecord(record)).toHaveProperty("record");
  const variants = [...withNul(record)];
  expect(variants.length).toBeGreaterThan(10);
  for (const variant of variants) expect({ variant, ...parseRecord(variant) }).toHaveProperty("refused");
});
