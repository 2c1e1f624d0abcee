import { invalid } from "../error.ts";
import { isText, TEXT_RULE } from "../records/record-schemas.ts";
import type { FieldDefinition } from "./definition.ts";

/** A value of a custom field. A date is text like 2026-01-31. */
export type FieldValue = string | number | boolean;

/** Values by key, in the order of the definitions. */
export type FieldValues = Record<string, FieldValue>;

/** Returns a stored value. Reads only own properties, because a key can be the name of an inherited property. */
export function storedValue(values: FieldValues, key: string): FieldValue | null {
  return Object.hasOwn(values, key) ? (values[key] ?? null) : null;
}

/** Says why a field cannot have a value. @returns undefined if it can */
export function valueRefusal({ type, options }: FieldDefinition, value: FieldValue): string | undefined {
  switch (type) {
    case "text":
      return typeof value === "string" && isText(value) ? undefined : `must be a string ${TEXT_RULE}, or null`;
    case "number":
      return typeof value === "number" && Number.isFinite(value) ? undefined : "must be a number, or null";
    case "boolean":
      return typeof value === "boolean" ? undefined : "must be true or false, or null";
    case "date":
      return typeof value === "string" && isDay(value) ? undefined : "must be a day like 2026-01-31, or null";
    case "choice":
      return options.includes(value as string) ? undefined : `must be one of ${options.join(", ")}, or null`;
  }
}

/** Reads a value that a person typed. @throws SdsError `invalid` */
export function parseValueText(field: FieldDefinition, text: string): FieldValue {
  const value = readValue(field, text);
  const refusal = valueRefusal(field, value);
  if (refusal === undefined) return value;
  throw invalid(`the value of ${field.key} ${refusal.replace(/, or null$/, "")}`);
}

function readValue({ type }: FieldDefinition, text: string): FieldValue {
  if (type === "number") return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text.trim()) ? Number(text) : Number.NaN;
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
}

/** Whether a text is a day of the calendar. Date.parse alone would read 2026-02-30 as 2 March. */
function isDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const at = Date.parse(`${text}T00:00:00.000Z`);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text);
}
