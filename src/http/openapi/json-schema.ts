import type { TSchema } from "@sinclair/typebox";
import { MAX_STRING, RECORD_DATE_FORMAT, TEXT_FORMAT } from "../../domain/records/record-schemas.ts";
import type { JsonSchema } from "./parts.ts";

/** The formats that only this program knows, written with standard keywords. */
const FORMATS: Record<string, JsonSchema> = {
  // `maxLength` counts code points, and so does TEXT_FORMAT.
  [TEXT_FORMAT]: { maxLength: MAX_STRING },
  [RECORD_DATE_FORMAT]: { format: "date-time", pattern: "(Z|\\+00:00)$" },
};

/**
 * Writes schemas in the form that client generators expect: `null` as one of two types, constants as an enum, and a
 * reference for a schema with a title.
 * @param isNamed whether the document has a component with that title
 */
export function createSchemaWriter(isNamed: (title: string) => boolean): {
  /** Returns the schema itself. */
  define(schema: TSchema): JsonSchema;
  /** Returns a reference if the schema is a component; otherwise the schema itself. */
  refer(schema: TSchema): JsonSchema;
} {
  function define(schema: TSchema): JsonSchema {
    const { anyOf, must: _, properties, items, additionalProperties, format, ...rest } = plain(schema);
    const written: JsonSchema = { ...rest };
    if (Array.isArray(anyOf)) return ordered({ ...union(anyOf as TSchema[]), ...written });
    if (typeof format === "string") Object.assign(written, FORMATS[format] ?? { format });
    if (properties !== undefined) written["properties"] = mapValues(properties as Record<string, TSchema>, refer);
    if (items !== undefined) written["items"] = refer(items as TSchema);
    if (additionalProperties !== undefined) written["additionalProperties"] = others(additionalProperties);
    return ordered(written);
  }

  function refer(schema: TSchema): JsonSchema {
    const { title } = schema;
    return title !== undefined && isNamed(title) ? { $ref: `#/components/schemas/${title}` } : define(schema);
  }

  /** Writes the schema of fields that an object does not name; true if these fields can have any value. */
  function others(schema: unknown): boolean | JsonSchema {
    if (typeof schema === "boolean") return schema;
    const written = define(schema as TSchema);
    return Object.keys(written).length === 0 || written;
  }

  function union(members: readonly TSchema[]): JsonSchema {
    const others = members.filter(({ type }) => type !== "null");
    const written = others.every((member) => "const" in member)
      ? { type: "string", enum: others.map((member) => member["const"]) }
      : oneMember(others);
    return others.length === members.length ? written : orNull(written);
  }

  function oneMember(members: readonly TSchema[]): JsonSchema {
    const [only, ...more] = members;
    return only !== undefined && more.length === 0 ? refer(only) : { anyOf: members.map(refer) };
  }

  return { define, refer };
}

function orNull(schema: JsonSchema): JsonSchema {
  const { type, enum: values, anyOf } = schema;
  if (Array.isArray(anyOf)) return { ...schema, anyOf: [...anyOf, { type: "null" }] };
  if (type === undefined) throw new Error("a schema that can be null needs a type");
  return {
    ...schema,
    type: [type, "null"].flat(),
    ...(Array.isArray(values) && { enum: [...values, null] }),
  };
}

/** In a written schema, the keywords of FIRST come first and those of LAST come last, for human readers. */
const FIRST = ["title", "description", "type"];
const LAST = ["properties", "required", "additionalProperties", "examples"];

function ordered(schema: JsonSchema): JsonSchema {
  const rank = (keyword: string) => (FIRST.includes(keyword) ? FIRST.indexOf(keyword) - 9 : LAST.indexOf(keyword) + 1);
  return Object.fromEntries(Object.entries(schema).toSorted(([a], [b]) => rank(a) - rank(b)));
}

/** Returns the schema without TypeBox's symbols. */
function plain(schema: TSchema): Record<string, unknown> {
  return Object.fromEntries(Object.entries(schema));
}

function mapValues<T, U>(object: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
}
