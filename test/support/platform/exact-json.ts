export type Exact = string | number | bigint | boolean | null | readonly Exact[] | { readonly [key: string]: Exact };

/** Writes JSON as the platform does: ids above 2^53 are numbers, which JSON.stringify cannot write. */
export function exactJson(value: Exact): string {
  if (typeof value === "bigint") return value.toString();
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (isList(value)) return `[${value.map(exactJson).join(",")}]`;
  return `{${Object.entries(value)
    .map(([key, part]) => `${JSON.stringify(key)}:${exactJson(part)}`)
    .join(",")}}`;
}

function isList(value: object): value is readonly Exact[] {
  return Array.isArray(value);
}
