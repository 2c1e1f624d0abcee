import type { Customer } from "./resources.ts";

/** Names of fields that hold e-mail addresses, names and places, in our records and in the platform's payloads. */
const PERSONAL_FIELD = /e_?mail|name|phone|address|company|city|zip|latitude|longitude|browser_ip|note/i;

/** What is known about a person, to find it under any field name. */
export interface KnownPerson {
  email: string | null;
  names: string[];
}

/** What the customer's row says of the person. @param customer undefined for one that was never seen */
export function knownPerson(customer: Customer | undefined): KnownPerson {
  const { email = null, firstName, lastName } = customer ?? {};
  const names = [firstName, lastName, `${firstName} ${lastName}`].filter(
    (name) => typeof name === "string" && name !== "",
  );
  return { email, names: names.map((name) => String(name).toLowerCase()) };
}

/**
 * A JSON value with the personal data of one person replaced by null. A field whose name is the person's address or
 * name is left out. Everything else stays.
 */
export function withoutPerson(value: unknown, person: KnownPerson, field = ""): unknown {
  if (PERSONAL_FIELD.test(field)) return null;
  if (typeof value === "string") return describes(value.toLowerCase(), person) ? null : value;
  if (Array.isArray(value)) return value.map((each) => withoutPerson(each, person));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([key]) => !describes(key.toLowerCase(), person));
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutPerson(inner, person, key)]));
}

/** Whether a JSON value holds a customer's number or gid anywhere. */
export function mentions(value: unknown, gid: string): boolean {
  if (typeof value === "string" || typeof value === "number")
    return value === gid || String(value) === gid.slice(gid.lastIndexOf("/") + 1);
  return typeof value === "object" && value !== null && Object.values(value).some((inner) => mentions(inner, gid));
}

/** An address is found anywhere in a text; a name, or an address that has no @, only as the whole text. */
function describes(text: string, { email, names }: KnownPerson): boolean {
  const address = email?.toLowerCase() ?? "";
  const hasAddress = address.includes("@") ? text.includes(address) : address !== "" && text === address;
  return hasAddress || names.includes(text);
}
