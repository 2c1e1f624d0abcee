import Ajv2020, { type ValidateFunction } from "ajv/dist/2020.js";
import type { JsonSchema, OpenApiDocument } from "../../src/http/openapi/parts.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

interface Options {
  isDate: (text: string) => boolean;
  /** Whether objects refuse fields that the schema does not name. A schema can override this default. */
  isClosed: boolean;
}

/** @returns a function that compiles a schema of the document. The compiled schema lists the errors of a value */
export function createCompiler(
  document: OpenApiDocument,
  { isDate, isClosed }: Options,
): (schema: JsonSchema) => (value: unknown) => string | undefined {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true });
  ajv.addFormat("date-time", isDate);
  ajv.addFormat("uuid", UUID);
  for (const [name, schema] of Object.entries(document.components.schemas))
    ajv.addSchema(plain(schema, isClosed), name);
  const compiled = new Map<JsonSchema, ValidateFunction>();
  return (schema) => {
    const known = compiled.get(schema) ?? ajv.compile(plain(schema, isClosed));
    compiled.set(schema, known);
    return (value) => (known(value) ? undefined : ajv.errorsText(known.errors));
  };
}

/** Copies a schema for Ajv: references become names. If `isClosed`, objects refuse other fields by default. */
function plain(schema: JsonSchema, isClosed: boolean): JsonSchema {
  const { $ref, discriminator: _, ...rest } = schema;
  const entries = Object.entries(rest).map(([keyword, value]) => [keyword, plainIn(keyword, value, isClosed)]);
  const copy = Object.fromEntries(entries);
  if (typeof $ref === "string") copy["$ref"] = $ref.replace("#/components/schemas/", "");
  return isClosed && copy["properties"] !== undefined ? { additionalProperties: false, ...copy } : copy;
}

function plainIn(keyword: string, value: unknown, isClosed: boolean): unknown {
  const schemas = (values: unknown) =>
    Object.entries(values as Record<string, JsonSchema>).map(
      ([name, inner]) => [name, plain(inner, isClosed)] as const,
    );
  if (keyword === "properties") return Object.fromEntries(schemas(value));
  if (keyword === "items") return plain(value as JsonSchema, isClosed);
  if (keyword === "anyOf" || keyword === "oneOf") return schemas(value).map(([, inner]) => inner);
  return value;
}
