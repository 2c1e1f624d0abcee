import { KindGuard, type TObject, type TSchema } from "@sinclair/typebox";

/**
 * Writes TypeScript types from the schemas that the server validates with. So the client's package does not need the
 * schema library.
 */

/** The names of the exported types, by their schemas. */
export type Names = ReadonlyMap<TSchema, string>;

const WIDTH = 120;

/**
 * An exported interface, with the schema's descriptions as comments.
 * @param base name of an interface that it extends
 */
export function interfaceText(name: string, schema: TObject, names: Names, base = ""): string {
  const heading = base === "" ? name : `${name} extends ${base}`;
  return `${comment(schema, "")}export interface ${heading} ${objectText(schema, names, "")}\n`;
}

/** Writes the type of a schema's value. @throws Error for a kind of schema that no resource has today */
function typeText(schema: TSchema, names: Names, indent: string): string {
  const name = names.get(schema);
  if (name !== undefined) return name;
  if (Array.isArray(schema["anyOf"]))
    return schema["anyOf"].map((one: TSchema) => typeText(one, names, indent)).join(" | ");
  if (schema["const"] !== undefined) return JSON.stringify(schema["const"]);
  switch (schema["type"]) {
    case "string":
    case "boolean":
    case "null":
      return schema["type"];
    case "integer":
    case "number":
      return "number";
    case "array":
      return `${typeText(schema["items"], names, indent)}[]`;
    case "object":
      if (KindGuard.IsObject(schema)) return objectText(schema, names, indent);
      return `Record<string, ${typeText(schema["additionalProperties"], names, indent)}>`;
  }
  throw new Error(`there is no type for ${JSON.stringify(schema)}`);
}

/** Writes a type with the schema's fields, in their order. If the schema allows other fields, their type is unknown. */
function objectText(schema: TObject, names: Names, indent: string): string {
  const inner = `${indent}  `;
  const fields = Object.entries(schema.properties).map(([key, field]) => {
    const optional = schema.required?.includes(key) === true ? "" : "?";
    const name = /^\w+$/.test(key) ? key : JSON.stringify(key);
    return `${comment(field, inner)}${inner}${name}${optional}: ${typeText(field, names, inner)};\n`;
  });
  const others = typeof schema.additionalProperties === "object" ? `${inner}[field: string]: unknown;\n` : "";
  return `{\n${fields.join("")}${others}${indent}}`;
}

function comment({ description = "" }: TSchema, indent: string): string {
  if (description === "") return "";
  const line = `${indent}/** ${description} */`;
  if (line.length <= WIDTH) return `${line}\n`;
  const start = `${indent} * `;
  const lines = [start];
  for (const word of description.split(" ")) {
    const last = lines.at(-1) ?? "";
    if (last.length + word.length + 1 > WIDTH) lines.push(`${start}${word}`);
    else lines[lines.length - 1] = last === start ? `${start}${word}` : `${last} ${word}`;
  }
  return `${indent}/**\n${lines.join("\n")}\n${indent} */\n`;
}
