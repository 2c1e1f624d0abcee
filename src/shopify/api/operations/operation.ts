/** A query or mutation of the platform's Admin API, with the types of its variables and its data. */
export interface Operation<Variables, Data> {
  name: string;
  text: string;
  /** How many nodes a query asks for, if that varies: its cost depends on it. */
  sizeOf?(variables: Variables): number;
  /** Never set: it only carries the types. */
  types?: { variables: Variables; data: Data };
}

/** Makes an operation from its text, which contains its name. */
export function operation<Variables, Data>(
  text: string,
  sizeOf: (variables: Variables) => number = () => 1,
): Operation<Variables, Data> {
  const name = /(?:query|mutation) (\w+)/.exec(text)?.[1] ?? "";
  return { name, text: text.replaceAll(/\s+/g, " ").trim(), sizeOf };
}

/** The fields of a page of nodes. */
export function pageOf(nodeFields: string): string {
  return `pageInfo { hasNextPage endCursor } nodes { ${nodeFields} }`;
}

export type NoVariables = Record<string, never>;

export interface PageVariables {
  after: string | null;
  /** A filter in the platform's search syntax; null for everything. */
  query: string | null;
}

export interface Gid {
  id: string;
}

export interface Money {
  amount: string;
  currencyCode: string;
}
