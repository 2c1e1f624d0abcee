import { type JsonSchema, nameOf, type OpenApiDocument, schemaOf } from "../openapi/parts.ts";

/** Writes a Markdown table. Escapes line breaks and bars in cells. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll(/\s*\n\s*/g, " ").replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(headings), `|${headings.map(() => "---").join("|")}|`, ...rows.map(line)].join("\n");
}

/** Joins the paragraphs that are not empty. */
export function paragraphs(texts: readonly (string | undefined)[]): string {
  return texts.filter(Boolean).join("\n\n");
}

/** Writes a type in words. A named type links to its section. */
export function typeText(schema: JsonSchema): string {
  if (schema.$ref !== undefined) return linkTo(nameOf({ $ref: schema.$ref }));
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives !== undefined) return alternatives.map(typeText).join(" or ");
  if (schema.const !== undefined) return code(schema.const);
  const types = [schema.type ?? []].flat();
  const words = types.map((type) => {
    if (type === "null") return "null";
    const values = schema.enum?.filter((value) => value !== null);
    if (values !== undefined) return `one of ${values.map(code).join(", ")}`;
    if (type === "array") return `array of ${schema.items === undefined ? "anything" : typeText(schema.items)}`;
    const [, object] = /^\^gid:\/\/shopify\/(\w+)\//.exec(schema.pattern ?? "") ?? [];
    if (object !== undefined) return `gid of ${code(object)}`;
    return schema.format === "date-time" ? "date" : type;
  });
  return words.length === 0 ? "anything" : words.join(" or ");
}

function linkTo(name: string): string {
  return `[${name}](#${name.toLowerCase()})`;
}

function code(value: unknown): string {
  return `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
}

/** Writes a table of an object's fields. Fields of unnamed inner objects are written like `error.code`. */
export function fieldTable(schema: JsonSchema): string {
  const rows = fields(schema, "");
  const hasOptional = rows.some(({ isRequired }) => !isRequired);
  return table(
    ["field", "type", ...(hasOptional ? ["required"] : []), "meaning"],
    rows.map(({ name, schema: field, isRequired }) => [
      `\`${name}\``,
      typeText(field),
      ...(hasOptional ? [isRequired ? "yes" : "no"] : []),
      field.description ?? "",
    ]),
  );
}

function fields(schema: JsonSchema, before: string): { name: string; schema: JsonSchema; isRequired: boolean }[] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, field]) => {
    const name = `${before}${key}`;
    if (field.properties !== undefined) return fields(field, `${name}.`);
    return [{ name, schema: field, isRequired: schema.required?.includes(key) ?? false }];
  });
}

/**
 * Writes a section for each named schema that `from` refers to, directly or indirectly. Leaves out the schemas in
 * `known`. The sections have the order of the references.
 */
export function schemaSections(
  document: OpenApiDocument,
  from: readonly JsonSchema[],
  known: ReadonlySet<string>,
): string[] {
  const found = new Map<string, JsonSchema>();
  const visit = (schema: JsonSchema): void => {
    if (schema.$ref !== undefined) {
      const name = nameOf({ $ref: schema.$ref });
      if (found.has(name) || known.has(name)) return;
      const named = schemaOf(document, schema);
      found.set(name, named);
      visit(named);
    }
    const inner = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...Object.values(schema.properties ?? {})];
    for (const each of schema.items === undefined ? inner : [...inner, schema.items]) visit(each);
  };
  for (const schema of from) visit(schema);
  return [...found].map(([name, schema]) => schemaSection(name, schema));
}

function schemaSection(name: string, schema: JsonSchema): string {
  const content = schema.properties === undefined ? `One of these: ${typeText(schema)}.` : fieldTable(schema);
  return paragraphs([`## ${name}`, schema.description, content]);
}
