import { invalid, SdsError } from "../error.ts";
import { isText } from "../records/record-schemas.ts";

export const FIELD_TYPES = ["text", "number", "boolean", "date", "choice"] as const;
type CustomFieldType = (typeof FIELD_TYPES)[number];

/** A custom field of a shop: data that the merchant keeps beside each subscription (docs/records.md, custom_field). */
export interface FieldDefinition {
  /** Names the field in records and answers. It never changes. */
  key: string;
  label: string;
  type: CustomFieldType;
  /** The allowed values of a `choice`; empty for other types. */
  options: string[];
  /** Whether a record whose `by` is "subscriber" may change the value. */
  subscriberEditable: boolean;
  /** Whether the redaction of a customer removes the values in their subscriptions. */
  personal: boolean;
  /** Epoch milliseconds. Archived fields are neither written nor shown. */
  archivedAt: number | null;
  /** Whether a value was ever stored. Then the type never changes. */
  hasValues: boolean;
}

/** What a merchant enters for a new field. */
export interface NewField extends Pick<FieldDefinition, "key" | "label" | "type"> {
  options?: string[];
  subscriberEditable?: boolean;
  /** Default: true for text, false for other types. */
  personal?: boolean;
}

type FieldChange = Partial<Pick<FieldDefinition, "label" | "type" | "options" | "subscriberEditable" | "personal">>;

const KEY = /^[a-z][a-z0-9_]{0,39}$/;
/** Maximum length of labels and options, in code points. */
export const MAX_TEXT = 80;
const MAX_OPTIONS = 50;
/** Maximum number of fields that are not archived. */
export const MAX_FIELDS = 50;
/** Maximum number of fields of a shop, including archived fields, because their values stay stored. */
const MAX_STORED_FIELDS = 200;

/** Adds a field at the end of the list. @throws SdsError `invalid`, or `conflict` if the key exists */
export function addField(fields: readonly FieldDefinition[], field: NewField): FieldDefinition[] {
  const { key, label, type, options = [], subscriberEditable = false, personal = type === "text" } = field;
  if (!KEY.test(key))
    throw invalid("the key must be 1 to 40 lower-case letters, digits and _, and begin with a letter");
  const same = fields.find((each) => each.key === key);
  if (same !== undefined)
    throw new SdsError(
      "conflict",
      `the field ${key} exists already${same.archivedAt === null ? "" : ", and is archived"}`,
    );
  if (fields.length >= MAX_STORED_FIELDS)
    throw invalid(`a shop can have at most ${MAX_STORED_FIELDS} fields, archived ones included`);
  checkCount(fields);
  const added = { key, label, type, options, subscriberEditable, personal, archivedAt: null, hasValues: false };
  return [...fields, checked(added)];
}

/** Changes a field. @throws SdsError `not_found` or `invalid` */
export function changeField(fields: readonly FieldDefinition[], key: string, change: FieldChange): FieldDefinition[] {
  const before = fieldNamed(fields, key);
  const type = change.type ?? before.type;
  if (type !== before.type && before.hasValues)
    throw invalid(
      `the field ${key} has values, so it keeps its type ${before.type}: archive it, and add a field with another key`,
    );
  // A field that is no longer a choice loses its options.
  const options = change.options ?? (type === "choice" ? before.options : []);
  // A text can say anything about a person. So a field that becomes text is personal, unless the change says otherwise.
  const personal = change.personal ?? (before.personal || (type === "text" && type !== before.type));
  return replaced(fields, checked({ ...before, ...change, type, options, personal }));
}

/** Hides a field and its values. @param now epoch milliseconds @throws SdsError `not_found` */
export function archiveField(fields: readonly FieldDefinition[], key: string, now: number): FieldDefinition[] {
  const before = fieldNamed(fields, key);
  return replaced(fields, { ...before, archivedAt: before.archivedAt ?? now });
}

/** Brings back an archived field with its values. @throws SdsError `not_found`, `invalid` */
export function restoreField(fields: readonly FieldDefinition[], key: string): FieldDefinition[] {
  const before = fieldNamed(fields, key);
  if (before.archivedAt !== null) checkCount(fields);
  return replaced(fields, { ...before, archivedAt: null });
}

/** Marks the fields with these keys as having values. */
export function withValues(fields: readonly FieldDefinition[], keys: ReadonlySet<string>): FieldDefinition[] {
  return fields.map((field) => (keys.has(field.key) ? { ...field, hasValues: true } : field));
}

/** Returns the keys whose stored values are not shown. */
export function hiddenKeys(fields: readonly FieldDefinition[]): string[] {
  return fields.filter(({ archivedAt, hasValues }) => archivedAt !== null && hasValues).map(({ key }) => key);
}

/** @throws SdsError `not_found` */
export function fieldNamed(fields: readonly FieldDefinition[], key: string): FieldDefinition {
  const field = fields.find((each) => each.key === key);
  if (field === undefined) throw new SdsError("not_found", `there is no field ${key}`);
  return field;
}

function replaced(fields: readonly FieldDefinition[], field: FieldDefinition): FieldDefinition[] {
  return fields.map((each) => (each.key === field.key ? field : each));
}

function checkCount(fields: readonly FieldDefinition[]): void {
  if (fields.filter(({ archivedAt }) => archivedAt === null).length >= MAX_FIELDS)
    throw invalid(`a shop can have at most ${MAX_FIELDS} fields that are not archived`);
}

function checked(field: FieldDefinition): FieldDefinition {
  const { label, type, options } = field;
  if (!isShort(label)) throw invalid(`the label must have 1 to ${MAX_TEXT} characters, without invisible ones`);
  if (!FIELD_TYPES.includes(type)) throw invalid(`the type must be one of ${FIELD_TYPES.join(", ")}`);
  if (type !== "choice" && options.length > 0) throw invalid("only a field of the type choice has options");
  if (type === "choice" && (options.length === 0 || options.length > MAX_OPTIONS))
    throw invalid(`a choice must have 1 to ${MAX_OPTIONS} options`);
  if (!options.every(isShort)) throw invalid(`an option must have 1 to ${MAX_TEXT} characters, without invisible ones`);
  if (new Set(options).size < options.length) throw invalid("two options are the same");
  return field;
}

/** Whether a text has 1 to 80 code points, no invisible character, and not only spaces. */
function isShort(text: string): boolean {
  return (
    isText(text) && text.trim() !== "" && [...text].length <= MAX_TEXT && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text)
  );
}
