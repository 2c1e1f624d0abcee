import type { NodePage } from "../paging.ts";

/** A query or mutation of the platform's Admin API, with the types of its variables and its data. */
export interface Operation<Variables, Data> {
  name: string;
  text: string;
  /** The number of nodes that a query asks for. The cost depends on it. */
  sizeOf(variables: Variables): number;
  /** Never set. This field only carries the type. */
  data?: Data;
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

/** A query that reads a root connection page by page. */
export interface ListOperation<Node> extends Operation<PageVariables, Record<string, NodePage<Node> | null>> {
  /** The connection's name in the data. */
  field: string;
}

/** Makes the query for a connection. A page has as many nodes as the platform allows. */
export function listOperation<Node>(
  name: string,
  field: string,
  sortKey: string,
  nodeFields: string,
): ListOperation<Node> {
  const text = `query ${name}($after: String, $query: String) {
    ${field}(first: 250, after: $after, query: $query, sortKey: ${sortKey}) { ${pageOf(nodeFields)} } }`;
  return { ...operation(text), field };
}

export interface Gid {
  id: string;
}

/** An object with only its gid and the time of its last change. */
export interface ChangedNode extends Gid {
  updatedAt: string;
}

export interface Money {
  amount: string;
  currencyCode: string;
}
