import type { TSchema } from "@sinclair/typebox";
import type { TypeCheck } from "@sinclair/typebox/compiler";
import { ValueErrorType } from "@sinclair/typebox/errors";
import { isLike, nearest } from "../../lib/similar.ts";

/** Why a record is refused: the field, as a path from the top of the record, and the broken rule. */
export interface Refusal {
  field: string;
  reason: string;
}

/** Maximum number of field names to compare with a missing field's name. A hostile record can have 50,000 fields. */
const MAX_COMPARED = 100;

/** @param field empty if the whole record is wrong */
export function refuse(field: string, reason: string): { refused: Refusal } {
  return { refused: { field, reason } };
}

/** Says why a value does not match the schema of a record. @param lineFields the allowed fields of a line item */
export function refusalOf(check: TypeCheck<TSchema>, value: object, lineFields: readonly string[]): Refusal {
  const first = check.Errors(value).First();
  if (first === undefined) return { field: "", reason: "is not valid" };
  // The path is a JSON pointer (RFC 6901).
  const keys = first.path
    .slice(1)
    .split("/")
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  const name = keys.pop() ?? "";
  const parent = keys.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], value) as object;
  if (first.value === undefined) {
    // A misspelt field is both a missing field and an unknown field. The message names the unknown field.
    const known = fieldsOf(check, keys, lineFields);
    const given = Object.keys(parent).slice(0, MAX_COMPARED);
    const misspelt = given.find((field) => !known.includes(field) && isLike(field, name));
    return misspelt === undefined
      ? { field: fieldPathOf([...keys, name]), reason: "is missing" }
      : unknownField([...keys, misspelt], name);
  }
  if (first.type === ValueErrorType.ObjectAdditionalProperties) {
    const meant = nearest(name, fieldsOf(check, keys, lineFields));
    return unknownField([...keys, name], meant);
  }
  return { field: fieldPathOf([...keys, name]), reason: first.schema["must"] ?? "is not valid" };
}

/** @param meant the known field with a similar name */
export function unknownField(keys: readonly string[], meant: string | undefined): Refusal {
  return {
    field: fieldPathOf(keys),
    reason: `is not a field of this record${meant === undefined ? "" : ` (did you mean ${meant}?)`}`,
  };
}

/** Writes a path: `["lines", "0", "title"]` becomes `lines[0].title`. */
function fieldPathOf(keys: readonly string[]): string {
  return keys
    .map((key, index) => (index > 0 && /^\d+$/.test(key) ? `[${key}]` : `.${key}`))
    .join("")
    .replace(/^\./, "")
    .slice(0, 100);
}

/** Returns the allowed fields of the record or of a line item in it. */
function fieldsOf(
  check: TypeCheck<TSchema>,
  keys: readonly string[],
  lineFields: readonly string[],
): readonly string[] {
  return keys[0] === "lines" ? lineFields : Object.keys(check.Schema()["properties"] ?? {});
}
