import type { Row } from "./rows.ts";

type Comparison = ">" | ">=" | "<" | "<=" | "=";

export interface Condition {
  /** The sort key under which `sortValue` finds the value to compare. */
  readonly sortKey: string;
  readonly comparison: Comparison;
  readonly value: number | string;
}

const TIMES: Record<string, string> = {
  created_at: "CREATED_AT",
  updated_at: "UPDATED_AT",
  processed_at: "PROCESSED_AT",
};

/**
 * Parses the part of the platform's search syntax that tests need. Ignores unknown terms as the platform does, but
 * reports them to `unknown`. @param firstId see `ShopRows.firstId`
 */
export function readSearch(query: string, unknown: (term: string) => void, firstId = 0n): Condition[] {
  return [...query.matchAll(/'[^']*'|"[^"]*"|[^\s:]+:(?:[<>]=?)?(?:'[^']*'|"[^"]*"|\S*)|\S+/g)].flatMap(([term]) => {
    if (term === "AND") return [];
    const [, field = "", comparison = "", quoted = ""] = /^(\w+):([<>]=?)?(.*)$/.exec(term) ?? [];
    const text = quoted.replace(/^(['"])(.*)\1$/, "$2");
    const sortKey = TIMES[field];
    const time = Date.parse(text);
    if (sortKey !== undefined && !Number.isNaN(time))
      return { sortKey, comparison: isComparison(comparison) ? comparison : "=", value: time };
    if (field === "id" && isComparison(comparison) && /^\d+$/.test(text))
      return { sortKey: "ID", comparison, value: Number(BigInt(text) - firstId) };
    if (field === "status" && comparison === "")
      return { sortKey: "STATUS", comparison: "=", value: text.toUpperCase() };
    unknown(term);
    return [];
  });
}

export function matches(
  row: Row,
  { sortKey, comparison, value }: Condition,
  readValue: (row: Row, sortKey: string) => number | string,
): boolean {
  const own = readValue(row, sortKey);
  if (comparison === "=") return own === value;
  if (comparison.startsWith(">")) return own > value || (comparison === ">=" && own === value);
  return own < value || (comparison === "<=" && own === value);
}

function isComparison(text: string): text is Comparison {
  return [">", ">=", "<", "<="].includes(text);
}
