import type { Contacts } from "../records/platform-records.ts";
import type { Customer } from "../resources.ts";

/** Names of fields that hold e-mail addresses, names and places, in our records and in the platform's payloads. */
const PERSONAL_FIELD = /e_?mail|name|phone|address|company|city|zip|latitude|longitude|browser_ip|note/i;

/** A telephone number as people write one. */
const PHONE = /^[-+()./ 0-9]+$/;

/** The known data of a person, to find it in any field. */
export interface KnownPerson {
  /** E-mail addresses in lower case. */
  emails: string[];
  names: string[];
  /** Telephone numbers, digits only. */
  phones: string[];
}

/**
 * Collects the person's data from the customer's row and from the request. The two can have different e-mail addresses.
 * @param customer undefined for an unknown customer
 */
export function knownPerson(customer: Customer | undefined, { email, phone }: Contacts = {}): KnownPerson {
  const { firstName, lastName } = customer ?? {};
  const isGiven = (text: string | null | undefined): text is string => typeof text === "string" && text !== "";
  const lower = (texts: (string | null | undefined)[]) => texts.filter(isGiven).map((text) => text.toLowerCase());
  return {
    emails: lower([customer?.email, email]),
    names: lower([firstName, lastName, `${firstName} ${lastName}`]),
    phones: lower([phone]).map(digitsOf).filter(isGiven),
  };
}

/** Replaces a person's data in a JSON value by null. Drops each field whose name is the person's data. */
export function withoutPerson(value: unknown, person: KnownPerson, field = ""): unknown {
  if (PERSONAL_FIELD.test(field)) return null;
  if (typeof value === "string") return describes(value.toLowerCase(), person) ? null : value;
  if (Array.isArray(value)) return value.map((each) => withoutPerson(each, person));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([key]) => !describes(key.toLowerCase(), person));
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutPerson(inner, person, key)]));
}

/** Whether a JSON value has a customer's number or gid at any depth. */
export function mentions(value: unknown, gid: string): boolean {
  if (typeof value === "string" || typeof value === "number")
    return value === gid || String(value) === gid.slice(gid.lastIndexOf("/") + 1);
  return typeof value === "object" && value !== null && Object.values(value).some((inner) => mentions(inner, gid));
}

/**
 * Whether a text is the person's data. An e-mail address is found anywhere in the text. A name, a number, or an address
 * without @ must be the whole text.
 */
function describes(text: string, { emails, names, phones }: KnownPerson): boolean {
  const hasAddress = emails.some((email) => (email.includes("@") ? text.includes(email) : text === email));
  return hasAddress || names.includes(text) || (PHONE.test(text) && phones.includes(digitsOf(text)));
}

function digitsOf(text: string): string {
  return text.replaceAll(/[^0-9]/g, "");
}
