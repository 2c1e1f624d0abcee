import { expect, test } from "bun:test";
import fc from "fast-check";
import { customerId } from "../../../src/domain/ids.ts";
import { createTextSearch, redactionOf, TEXT_PLACES } from "../../../src/domain/people/redaction.ts";
import { customer, gid } from "../../support/records.ts";

const DOMAIN = "alpha.myshopify.com";
const number = fc.integer({ min: 1, max: 130 });
/**
 * Values in the platform's texts. Most mention a customer; `n / 10` only contains the digits of a customer's number.
 */
const platformMention = fc.oneof(
  number.map((n) => gid.customer(n)),
  number,
  number.map(String),
  number.map((n) => n / 10),
);
/** Values in our own texts, which can also have internal ids. */
const ownMention = fc.oneof(
  platformMention,
  number.map((n) => customerId(DOMAIN, gid.customer(n))),
);
const body = (mention: fc.Arbitrary<string | number>) =>
  fc.dictionary(fc.constantFrom("customer", "customer_id", "data", "ids", "1"), fc.array(mention));
const textIn = fc
  .constantFrom(...TEXT_PLACES)
  .chain((place) =>
    fc.record({ place: fc.constant(place), data: body(place === "delivery" ? ownMention : platformMention) }),
  );

test("the search finds every text that a redaction of one of the people changes", () => {
  const known = customer(1, { email: "ada@example.com", firstName: "Ada" });
  fc.assert(
    fc.property(textIn, fc.uniqueArray(number, { maxLength: 6 }), ({ place, data }, people) => {
      const value = { id: "x", email: "ada@example.com", data };
      const text = JSON.stringify(value);
      const gids = people.map((n) => gid.customer(n));
      const found = createTextSearch(DOMAIN, gids)(place, text);
      const stored = { place, key: "x", text };
      const changes = gids.some((each) => redactionOf(DOMAIN, each, known as never)(stored).text !== text);
      // Only texts that the search missed are checked. A found text may be reformatted although it names nobody.
      if (!found) expect(changes).toBe(false);
    }),
    { numRuns: 3_000 },
  );
});

test.each([
  ["ada@old.example", "ADA@old.example now ada@new.example", null],
  ["+1 555-0100", "(1) 555 0100", null],
  ["+1 555-0100", "15550100 cents", "15550100 cents"],
  ["+1 555-0100", "", ""],
])("a contact of the request, %s, is removed from a text about the person: %p", (contact, value, expected) => {
  const contacts = contact.includes("@") ? { email: contact } : { phone: contact };
  const text = JSON.stringify({ type: "reward", id: "r", customer: gid.customer(1), to: value });
  const redacted = redactionOf(DOMAIN, gid.customer(1), undefined, contacts)({ place: "reward", key: "r", text });
  expect(JSON.parse(redacted.text)).toMatchObject({ to: expected });
});

test.each([
  ["delivery", `{"customer_id":"${customerId(DOMAIN, gid.customer(1))}"}`, true],
  ["delivery", `{"friend":"${gid.customer(1)}"}`, true],
  ["delivery", `{"customer_id":"${customerId(DOMAIN, gid.customer(2))}","n":1}`, false],
  ["reward", `{"customer":"${gid.customer(1)}"}`, true],
  ["reward", `{"customer":"${gid.customer(11)}","n":1}`, false],
  ["inbox", '{"customer":{"id":1}}', true],
  ["inbox", `{"customer":"${gid.customer(1)}"}`, true],
  ["inbox", '{"customer":{"id":11},"total":"2.10"}', false],
  ["inbox", "no JSON, but 1", true],
] as const)("in %s, %s is found: %p", (place, text, expected) => {
  expect(createTextSearch(DOMAIN, [gid.customer(1)])(place, text)).toBe(expected);
  expect(createTextSearch(DOMAIN, [])(place, text)).toBe(false);
  expect(createTextSearch(DOMAIN, [gid.customer(7), gid.customer(1)])(place, text)).toBe(expected);
});
