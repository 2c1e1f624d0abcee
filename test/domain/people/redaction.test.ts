import { expect, test } from "bun:test";
import fc from "fast-check";
import { customerId } from "../../../src/domain/ids.ts";
import { knownPerson, withoutPerson } from "../../../src/domain/people/person.ts";
import { createTextSearch, redactionOf, TEXT_PLACES } from "../../../src/domain/people/redaction.ts";
import { processorMs } from "../../support/processor-time.ts";
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

/** Redacts a reward of the person. @param to a field of the reward @returns the field afterwards */
function redactedField(contact: string, to: string): unknown {
  const contacts = contact.includes("@") ? { email: contact } : { phone: contact };
  const text = JSON.stringify({ type: "reward", id: "r", customer: gid.customer(1), to });
  const redacted = redactionOf(DOMAIN, gid.customer(1), undefined, contacts)({ place: "reward", key: "r", text });
  return JSON.parse(redacted.text).to;
}

test.each([
  ["ada@old.example", "ADA@old.example now ada@new.example", "[redacted] now [redacted]"],
  ["ada@old.example", "https://x.example/?to=ada%40old.example&n=1", "https://x.example/?to=[redacted]&n=1"],
  ["+1 555-0100", "(1) 555 0100", null],
  ["+1 555-0100", "call 1 (555) 0100.", "call [redacted]."],
  ["+49 151 1234567", "call 0151/123 45 67, or +49 (0)151 1234567", "call [redacted], or [redacted]"],
  ["1234567", "call 123-4567", "call [redacted]"],
])("the contact %s is removed from a text about the person: %p", (contact, value, expected) => {
  expect(redactedField(contact, value)).toBe(expected);
});

test.each([
  ["+49 151 1234567", "parcel 9491511234567"],
  ["+49 151 1234567", "gid://shopify/Order/491511234567"],
  ["+1 555-0100", ""],
  ["123456", "parcel 123456"],
  ["+49 151 123", "parcel 0151123"],
])("a text without the contact %s, or with a number of fewer than seven digits, is unchanged: %p", (contact, value) => {
  expect(redactedField(contact, value)).toBe(value);
});

test.each([
  ["Well done, Ada Lovelace!", "Well done, [redacted]!"],
  ["WELL DONE ADA\u00a0 LOVELACE", "WELL DONE [redacted]"],
  ["Ada         Lovelace", "[redacted]"],
  ["for LOVELACE, Ada", "for [redacted]"],
  ["Ada Lovelace: Ada's gift", "[redacted]: [redacted]'s gift"],
  ["ada", null],
  ["Ada did it", "Ada did it"],
  ["Lovelace", null],
  ["Adalovelace and Canada Lovelace", "Adalovelace and Canada Lovelace"],
])("the full name, in any case and order, is replaced inside a text: %s", (message, expected) => {
  const text = JSON.stringify({ type: "reward", id: "r", customer: gid.customer(1), message });
  const profile = { firstName: "Ada", lastName: "Lovelace" };
  const redacted = redactionOf(DOMAIN, gid.customer(1), profile)({ place: "reward", key: "r", text });
  expect(JSON.parse(redacted.text).message).toBe(expected);
});

test("names with accents and names without gaps are found", () => {
  const redact = (profile: { firstName: string; lastName: string }, message: string) =>
    withoutPerson(message, knownPerson(profile));
  expect(redact({ firstName: "José", lastName: "Núñez" }, "to JOSÉ NÚÑEZ".normalize("NFD"))).toBe("to [redacted]");
  expect(redact({ firstName: "明", lastName: "李" }, "你好李明!")).toBe("你好[redacted]!");
  expect(redact({ firstName: "明", lastName: "李" }, "明天")).toBe("明天");
});

test.each([
  ["Anna", "Weiß", "ANNA WEISS"],
  ["Anna", "WEISS", "Anna Weiß"],
  ["İlker", "Işık", "İLKER IŞIK"],
  ["İlker", "Işık", "ilker ışık"],
  ["ilker", "ışık", "İLKER IŞIK"],
  ["ILKER", "ISIK", "ilker isik"],
  ["Νίκος", "Παπάς", "ΝΙΚΟΣ ΠΑΠΑΣ"],
  ["ΝΙΚΟΣ", "ΠΑΠΑΣ", "Νίκος Παπάς"],
  ["Conan", "O'Brien", "conan o’brien"],
  ["José", "García", "Jos%C3%A9%20Garc%c3%ADa"],
  ["José", "García", "JOS%C3%89+GARC%C3%8DA"],
  ["Ada", "Lovelace", "ada%20lovelace"],
])("the name %s %s is found as %s", (firstName, lastName, text) => {
  const person = knownPerson({ firstName, lastName });
  expect(withoutPerson(`https://x.example/?to=dear%20${text}, 20`, person)).toBe(
    "https://x.example/?to=dear%20[redacted], 20",
  );
});

test("a name alone is found in capitals, and an e-mail address inside a URL", () => {
  expect(withoutPerson({ to: "WEISS" }, knownPerson({ lastName: "Weiß" }))).toEqual({ to: null });
  const person = knownPerson({ email: "ada+o'b@x.example" });
  expect(withoutPerson("?to=ADA%2Bo%27b%40x.example&n=1", person)).toBe("?to=[redacted]&n=1");
  expect(withoutPerson("คุณนภา ใจดีค่ะ", knownPerson({ firstName: "นภา", lastName: "ใจดี" }))).toBe("คุณ[redacted]ค่ะ");
});

test("what a text says about a person whom the mirror does not know is removed from its other fields", () => {
  const message = "Well done, Ada LOVELACE (ada@x.example, 555 010 0100)";
  const own = { first_name: "Ada", lastName: "Lovelace", contact: { email: "ada@x.example", phone: "+15550100100" } };
  const text = JSON.stringify({ type: "reward", id: "r", customer: gid.customer(1), ...own, message, points: 5 });
  const redacted = redactionOf(DOMAIN, gid.customer(1), undefined)({ place: "reward", key: "r", text });
  const expected = { message: "Well done, [redacted] ([redacted], [redacted])", points: 5, first_name: null };
  expect(JSON.parse(redacted.text)).toMatchObject(expected);
});

test("a webhook's texts of the billing system are searched, and its own fields stay", () => {
  const data = { customer_id: customerId(DOMAIN, gid.customer(1)), status: "ACTIVE", reason_id: "Active: Ada Active" };
  const text = JSON.stringify({ topic: "cancel_flow.completed", data });
  const profile = { firstName: "Ada", lastName: "Active" };
  const redacted = redactionOf(DOMAIN, gid.customer(1), profile)({ place: "delivery", key: 1, text });
  expect(JSON.parse(redacted.text).data).toEqual({ ...data, reason_id: "[redacted]: [redacted]" });
});

test("hostile names and texts do not make the search slow", async () => {
  const search = (name: string, parts: readonly string[]) => {
    const person = knownPerson({ firstName: name, lastName: name, email: "a@b.c" }, { phone: "1".repeat(15) });
    const texts = parts.map((part) => `a@b.c ${part.repeat(50_000)}`);
    return processorMs(() => texts.map((text) => withoutPerson(text, person)));
  };
  const hostile = ["-", "%20", "a ", ". a , ", "1-", "a@"];
  const ordinary = hostile.map((part) => "x".repeat(part.length));
  const ordinaryMs = await search("Ada", ordinary);
  for (const name of ["Ada", "- ".repeat(300), "%20".repeat(200), ". a , ".repeat(100), "a ".repeat(500)])
    expect(await search(name, hostile)).toBeLessThan(10 * ordinaryMs);
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
