import type { Contacts } from "../records/platform-records.ts";
import type { Customer } from "../resources.ts";

/** Names of fields that hold e-mail addresses, names and places, in our records and in the platform's payloads. */
const PERSONAL_FIELD = /e_?mail|name|phone|address|company|city|zip|latitude|longitude|browser_ip|note/i;

/** A telephone number as people write one. */
const PHONE = /^[-+()./ 0-9]+$/;
/** Replaces the person's data inside a longer text. */
const REMOVED = "[redacted]";
/** Minimum number of digits. A shorter number inside a text is not treated as a telephone number. */
export const MIN_PHONE_DIGITS = 7;
const MAX_PHONE_DIGITS = 20;
/** The pattern of a gap between the words of a name. */
const NAME_GAP = "(?:[\\s,._+/-]|%20)+";
/** The pattern of a gap between the digits of a telephone number. */
const PHONE_GAP = "[-+()./\\s]{0,3}";
const ADDRESS = "[\\p{L}\\p{N}._%+-]{1,64}@[\\p{L}\\p{N}.-]{1,255}";
/** Writing systems in which a name has no gap between its words. */
const NO_GAP = /[\p{sc=Han}\p{sc=Hangul}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Mymr}]/u;
/**
 * Spellings of the same letter. A change of case, or a keyboard, can turn one spelling into another. The flag `i` and
 * `toLowerCase` treat them as different letters.
 */
const SAME_LETTERS = [
  ["i", "ı", "İ", "i\u0307"],
  ["ss", "ß"],
  ["'", "’", "ʼ", "%27"],
  ["α", "ά"],
  ["ε", "έ"],
  ["η", "ή"],
  ["ι", "ί", "ϊ", "ΐ"],
  ["ο", "ό"],
  ["υ", "ύ", "ϋ", "ΰ"],
  ["ω", "ώ"],
  ["σ", "ς"],
] as const;

/** The known data of a person, to find it in any field. */
export interface KnownPerson {
  /** E-mail addresses and names, each as `folded` returns it. A text that equals such an entry is the person's data. */
  texts: string[];
  /** Telephone numbers, digits only. */
  phones: string[];
  /** Finds an e-mail address, the full name or a telephone number inside a text; null if none is known. */
  identity: RegExp | null;
  /** Finds a part of the name, and any e-mail address, in a text that has the `identity`. */
  more: RegExp;
}

/** What a customer's row or record says about the person. */
export type Profile = Partial<Pick<Customer, "email" | "firstName" | "lastName">>;

/**
 * Collects the person's data from the customer's row and from the request. The two can have different e-mail addresses.
 * @param profile undefined for an unknown customer
 */
export function knownPerson(profile: Profile | undefined, { email, phone }: Contacts = {}): KnownPerson {
  const given = (texts: (string | null | undefined)[]) =>
    texts.flatMap((text) => (text ?? "").normalize("NFC").trim() || []);
  const emails = given([profile?.email, email]);
  const names = given([profile?.firstName, profile?.lastName]);
  const searched = names.filter((name) => wordsOf(name) !== "");
  const phones = given([phone?.replaceAll(/[^0-9]/g, "")]);
  const identities = [
    ...emails.filter((each) => each.includes("@")).map((each) => spellingsOf(each)),
    ...fullNames(searched),
    ...phones.flatMap(phonePatterns),
  ];
  return {
    texts: given([...emails, ...names, names.join(" ")]).map(folded),
    phones,
    identity: identities.length === 0 ? null : new RegExp(identities.join("|"), "giu"),
    more: new RegExp([ADDRESS, ...searched.map(wordsOf).map(asWord)].join("|"), "giu"),
  };
}

/** Returns patterns of the full name: first and last name in either order, and a name of several words. */
function fullNames(names: readonly string[]): string[] {
  const [first, last] = names;
  const several = names.filter((name) => /\s/.test(name)).map((name) => asWord(wordsOf(name)));
  if (first === undefined || last === undefined) return several;
  const isUnspaced = NO_GAP.test(`${first}${last}`);
  const together = [names, names.toReversed()].map((each) =>
    each.map(wordsOf).join(isUnspaced ? `(?:${NAME_GAP})?` : NAME_GAP),
  );
  return [...(isUnspaced ? together : together.map(asWord)), ...several];
}

/**
 * Returns the pattern of a name, with NAME_GAP for every gap. No word contains a gap character. Otherwise a character
 * could match in two ways, which would make a search slow.
 */
function wordsOf(name: string): string {
  return name
    .split(new RegExp(NAME_GAP))
    .filter((word) => word !== "")
    .map(spellingsOf)
    .join(NAME_GAP);
}

/** Returns a pattern that matches a text in any letter case, plain or percent-encoded. It needs the flags `iu`. */
function spellingsOf(text: string): string {
  const letters = folded(text).match(/ss|./gsu) ?? [];
  return letters
    .map((letter) => SAME_LETTERS.find(([first]) => first === letter) ?? [letter])
    .map((spellings) => `(?:${[...new Set(spellings.flatMap(withEncoded))].map(RegExp.escape).join("|")})`)
    .join("");
}

/** Returns a letter and its percent-encoded spellings, which a URL can have. */
function withEncoded(letter: string): string[] {
  const cases = [letter.toLowerCase(), letter.toUpperCase()];
  return [letter, ...cases.map((each) => encodeURIComponent(each)).filter((encoded) => encoded.startsWith("%"))];
}

/** Returns the same text for all spellings of a name, such as upper case and lower case. */
function folded(text: string): string {
  let same = text.toWellFormed().normalize("NFC").trim().toLowerCase();
  for (const [first, ...others] of SAME_LETTERS) for (const other of others) same = same.replaceAll(other, first);
  return same;
}

function asWord(pattern: string): string {
  return `(?<!(?<!%[0-9a-f]?)[\\p{L}\\p{N}])(?:${pattern})(?![\\p{L}\\p{N}])`;
}

/** Returns patterns of a telephone number: as it is, and with and without the country code of 1 to 3 digits. */
function phonePatterns(digits: string): string[] {
  const spaced = (part: string) => [...part].join(PHONE_GAP);
  const national = [1, 2, 3]
    .filter((code) => digits.length - code >= MIN_PHONE_DIGITS)
    .map((code) => `(?:${spaced(digits.slice(0, code))}${PHONE_GAP})?(?:0${PHONE_GAP})?${spaced(digits.slice(code))}`);
  if (digits.length < MIN_PHONE_DIGITS || digits.length > MAX_PHONE_DIGITS) return [];
  return [spaced(digits), ...national].map((pattern) => `(?<![0-9])(?:\\+|00${PHONE_GAP})?\\(?${pattern}(?![0-9])`);
}

export function isPersonalField(name: string): boolean {
  return PERSONAL_FIELD.test(name);
}

/**
 * Replaces a person's data in a JSON value. A text that is the person's data becomes null. Data inside a longer text
 * becomes REMOVED. Drops fields whose names contain the data.
 */
export function withoutPerson(value: unknown, person: KnownPerson, field = ""): unknown {
  if (isPersonalField(field)) return null;
  if (typeof value === "string") return textWithoutPerson(value, person);
  if (Array.isArray(value)) return value.map((each) => withoutPerson(each, person));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([key]) => textWithoutPerson(key, person) === key);
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutPerson(inner, person, key)]));
}

/** Whether a JSON value has a customer's number or gid at any depth. */
export function mentions(value: unknown, gid: string): boolean {
  if (typeof value === "string" || typeof value === "number")
    return value === gid || String(value) === gid.slice(gid.lastIndexOf("/") + 1);
  return typeof value === "object" && value !== null && Object.values(value).some((inner) => mentions(inner, gid));
}

/** Removes the person's data from a text. @returns null if the whole text is the person's data */
function textWithoutPerson(text: string, person: KnownPerson): string | null {
  // The digits of a gid can equal a telephone number.
  if (text.startsWith("gid://")) return text;
  if (person.texts.includes(folded(text))) return null;
  if (PHONE.test(text) && person.phones.includes(text.replaceAll(/[^0-9]/g, ""))) return null;
  return withoutIdentity(text, person);
}

/**
 * Replaces the person's data inside a text that has the `identity`. A text with only a first or last name is unchanged,
 * because that can be the name of a product.
 */
export function withoutIdentity(text: string, { identity, more }: KnownPerson): string {
  const normal = text.normalize("NFC");
  const without = identity === null ? normal : normal.replace(identity, REMOVED);
  return without === normal ? text : without.replace(more, REMOVED);
}
