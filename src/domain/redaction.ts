import { parseExact } from "../lib/exact-json.ts";
import { customerId } from "./ids.ts";
import { type KnownPerson, knownPerson, mentions, withoutPerson } from "./person.ts";
import type { Customer } from "./resources.ts";

/**
 * Where personal data can be, outside a customer's own row: bodies of queued reward events, rewards, and platform
 * webhooks in the inbox.
 */
export const TEXT_PLACES = ["delivery", "reward", "inbox"] as const;
export type TextPlace = (typeof TEXT_PLACES)[number];

/** A stored text that may name a person. `key` is the number of a delivery or inbox item, or the id of a reward. */
export interface StoredText {
  place: TextPlace;
  key: string | number;
  text: string;
}

/**
 * What a text in each place contains if it is about a person. Engines search for it; it also finds some texts that are
 * not about the person, because the digits of an id can be part of another number.
 */
export function searchTexts(domain: string, gid: string): Record<TextPlace, string> {
  return { delivery: customerId(domain, gid), reward: `"${gid}"`, inbox: gid.slice(gid.lastIndexOf("/") + 1) };
}

/** Removes one person's data from the texts that name them; other texts stay as they are. */
export type Redaction = (place: TextPlace, text: string) => string;

/**
 * Rewards have any fields that their sender adds, and the inbox has whole payloads of the platform. So a redaction
 * looks for fields by their names, and for what is known of the person. A queued body changes, and so does its
 * signature: the law is more important than equal bytes.
 * @param before the customer as known until now
 */
export function redactionOf(domain: string, gid: string, before: Customer | undefined): Redaction {
  const person = knownPerson(before);
  const id = customerId(domain, gid);
  const searched = searchTexts(domain, gid);
  return (place, text) => (text.includes(searched[place]) ? redactedText(text, gid, id, person) : text);
}

function redactedText(text: string, gid: string, id: string, person: KnownPerson): string {
  const value = parseExact(text);
  const isAboutPerson = value !== undefined && (mentions(value, gid) || mentions(value, id));
  return isAboutPerson ? JSON.stringify(withoutPerson(value, person)) : text;
}
