import type { Customer } from "./resources.ts";

/** Names of fields that hold e-mail addresses, names and places, in our records and in the platform's payloads. */
const PERSONAL_FIELD = /e_?mail|name|phone|address|company|city|zip|latitude|longitude|browser_ip|note/i;

/** What is known about a person, to find it under any field name. */
export interface KnownPerson {
  email: string | null;
  names: string[];
}

export function knownPerson(customer: Customer | undefined): KnownPerson {
  const { email = null, firstName, lastName } = customer ?? {};
  const names = [firstName, lastName, `${firstName} ${lastName}`].filter(
    (name) => typeof name === "string" && name !== "",
  );
  return { email, names: names.map((name) => String(name).toLowerCase()) };
}

/** A JSON value with the personal data of one person replaced by null. Everything else stays. */
export function withoutPerson(value: unknown, person: KnownPerson, field = ""): unknown {
  if (PERSONAL_FIELD.test(field)) return null;
  if (typeof value === "string") return describes(value.toLowerCase(), person) ? null : value;
  if (Array.isArray(value)) return value.map((each) => withoutPerson(each, person));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutPerson(inner, person, key)]));
}

/** Whether a JSON value holds a customer's number or gid anywhere. */
export function mentions(value: unknown, gid: string): boolean {
  if (typeof value === "string" || typeof value === "number")
    return value === gid || String(value) === gid.slice(gid.lastIndexOf("/") + 1);
  return typeof value === "object" && value !== null && Object.values(value).some((inner) => mentions(inner, gid));
}

function describes(text: string, { email, names }: KnownPerson): boolean {
  return (email !== null && text.includes(email.toLowerCase())) || names.includes(text);
}
