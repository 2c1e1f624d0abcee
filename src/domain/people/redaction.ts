import { asObject, type JsonObject, parseExact } from "../../lib/json.ts";
import { memoize } from "../../lib/text.ts";
import type { Topic } from "../events/event.ts";
import { customerId, redactedId } from "../ids.ts";
import type { Contacts } from "../records/platform-records.ts";
import { type KnownPerson, knownPerson, mentions, type Profile, withoutPerson } from "./person.ts";

/**
 * Where personal data is stored outside a customer's own row: queued webhooks and their answers, rewards, and platform
 * webhooks in the inbox.
 */
export const TEXT_PLACES = ["delivery", "reward", "inbox"] as const;
export type TextPlace = (typeof TEXT_PLACES)[number];

/** A stored text that may name a person. `key` is the number of a delivery or an inbox item, or the id of a reward. */
export interface StoredText {
  place: TextPlace;
  key: string | number;
  text: string;
}

/**
 * Returns the search texts for a person. Every stored text about the person contains at least one search text. A stored
 * text about other people can contain one too: the digits of an id can be part of another number.
 */
export function searchTexts(domain: string, gid: string): Record<TextPlace, string[]> {
  const quotedGid = `"${gid}"`;
  return {
    delivery: [customerId(domain, gid), quotedGid],
    reward: [quotedGid],
    inbox: [gid.slice(gid.lastIndexOf("/") + 1)],
  };
}

/** Patterns that match every possible result of `searchTexts`, for each place. */
const NAMES: Record<TextPlace, RegExp> = {
  delivery: /cus_[a-z2-7]{24}|"gid:\/\/shopify\/Customer\/[0-9]+"/g,
  reward: /"gid:\/\/shopify\/Customer\/[0-9]+"/g,
  inbox: /[0-9]+/g,
};

/** Returns a search for texts that may be about these people. It reads each text once. */
export function createTextSearch(domain: string, gids: Iterable<string>): (place: TextPlace, text: string) => boolean {
  const searched = Array.from(gids, (gid) => searchTexts(domain, gid));
  const namesIn = (place: TextPlace) => new Set(searched.flatMap((texts) => texts[place]));
  const names = {
    delivery: namesIn("delivery"),
    reward: namesIn("reward"),
    inbox: namesIn("inbox"),
  };
  return (place, text) => {
    for (const [name] of text.matchAll(NAMES[place])) if (names[place].has(name)) return true;
    return false;
  };
}

/**
 * A function that removes one person's data from a text. It returns the same object if the text does not name the
 * person. Otherwise it returns a new object, and the key of a reward can change. If it returns a new object for a
 * webhook, the caller also removes the webhook's answers, which can contain personal data.
 */
export type Redaction = (stored: StoredText) => StoredText;

/**
 * Returns the redaction of one person. A reward can have any fields, because its sender chooses them. The inbox has
 * whole payloads of the platform. So the redaction removes personal data by field names. It also removes the person's
 * data from other fields. This data comes from the profile, the request and the fields of the same text. The redaction
 * changes queued webhooks too, although retries should send the same bytes: the law is more important.
 * @param before the customer's profile before the redaction
 */
export function redactionOf(
  domain: string,
  gid: string,
  before: Profile | undefined,
  contacts: Contacts = {},
): Redaction {
  const personIn = createPersonReader(before, contacts);
  const id = customerId(domain, gid);
  const searched = searchTexts(domain, gid);
  return (stored) => {
    if (!searched[stored.place].some((text) => stored.text.includes(text))) return stored;
    const value = parseExact(stored.text);
    const isAboutPerson = value !== undefined && (mentions(value, gid) || mentions(value, id));
    if (!isAboutPerson) return stored;
    const person = personIn(value);
    const redacted = redactedValue(stored.place, value, person);
    const key = stored.place === "reward" ? String(redacted["id"]) : stored.key;
    return { place: stored.place, key, text: JSON.stringify(redacted) };
  };
}

/** Names of fields that hold data of the person whom the text is about. */
const OWN_FIELDS = {
  email: /^(customer_?)?e_?mail$/i,
  firstName: /^((customer_?)?first_?name|customer_?name|full_?name)$/i,
  lastName: /^(customer_?)?last_?name$/i,
  phone: /^(customer_?)?phone$/i,
};
/**
 * Maximum number of people whose search patterns are cached. Most texts about a person have the same data, so they
 * share the patterns. Making the patterns takes longer than searching with them.
 */
const MAX_PEOPLE = 100;

/** Returns a function that combines the person's data in a text with the known data of the person. */
function createPersonReader(before: Profile | undefined, contacts: Contacts): (value: JsonObject) => KnownPerson {
  const known: Record<string, string | null | undefined> = { ...before, phone: contacts.phone };
  const unknown = Object.entries(OWN_FIELDS).filter(([name]) => known[name] == null);
  const personOf = memoize(MAX_PEOPLE, (own: string) => {
    const { phone, ...profile } = JSON.parse(own) as Profile & Contacts;
    return knownPerson({ ...before, ...profile }, phone === undefined ? contacts : { ...contacts, phone });
  });
  return (value) =>
    personOf(JSON.stringify(Object.fromEntries(unknown.map(([name, field]) => [name, textIn(value, field)]))));
}

/** Finds the first text in a field of this name, at any depth. */
function textIn(value: unknown, field: RegExp): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    const found = typeof inner === "string" && field.test(name) ? inner : textIn(inner, field);
    if (found !== undefined && found.trim() !== "") return found;
  }
  return undefined;
}

/** The topic whose data can have any field of the billing system. */
const REWARD_TOPIC: Topic = "loyalty.reward_earned";
/** Texts of the billing system in the data of other topics. */
const SENDER_TEXTS = ["reason", "reason_id", "offer_type"];

/**
 * Redacts a value, except our own fields. Our own fields hold no personal data, even if a value in them equals a
 * person's name.
 */
function redactedValue(place: TextPlace, value: JsonObject, person: KnownPerson): JsonObject {
  switch (place) {
    case "delivery": {
      const data = asObject(value["data"]) ?? {};
      const kept =
        value["topic"] === REWARD_TOPIC
          ? ["source", "customer_id"]
          : Object.keys(data).filter((field) => !SENDER_TEXTS.includes(field));
      return { ...value, data: withoutPersonalFields(data, person, kept) };
    }
    case "reward":
      return {
        ...withoutPersonalFields(value, person, ["type", "id", "source", "customer"]),
        id: redactedRewardId(String(value["id"]), person),
      };
    case "inbox":
      return withoutPersonalFields(value, person, []);
  }
}

function withoutPersonalFields(value: JsonObject, person: KnownPerson, kept: readonly string[]): JsonObject {
  const entries = Object.entries(value).flatMap(([field, inner]) =>
    kept.includes(field) ? [[field, inner]] : Object.entries(withoutPerson({ [field]: inner }, person) as JsonObject),
  );
  return Object.fromEntries(entries);
}

/** Hashes a sender's id if it contains personal data. Equal ids get equal hashes, so repeated ids are still found. */
function redactedRewardId(id: string, person: KnownPerson): string {
  return withoutPerson(id, person) === id ? id : redactedId(id);
}

/** Applies redactions to a text, one after another. */
export function redact(stored: StoredText, redactions: readonly { redaction: Redaction }[]): StoredText {
  return redactions.reduce((current, { redaction }) => redaction(current), stored);
}
