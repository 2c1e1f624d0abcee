import type { NodePage } from "../paging.ts";

/** A query or mutation of the platform's Admin API, with the types of its variables and its data. */
export interface Operation<Variables, Data> {
  name: string;
  text: string;
  /** Number of nodes that a query asks for. The cost of the query depends on this number. */
  sizeOf(variables: Variables): number;
  /** Whether the query can ask for fewer objects. If a part fails, a smaller query is sent instead of a retry. */
  isDivisible(variables: Variables): boolean;
  /** Never set. This field only carries the type. */
  data?: Data;
}

/** Makes an operation from its GraphQL text. The operation's name is read from the text. */
export function operation<Variables, Data>(
  text: string,
  sizeOf: (variables: Variables) => number = () => 1,
  isDivisible: (variables: Variables) => boolean = () => false,
): Operation<Variables, Data> {
  const name = /(?:query|mutation) (\w+)/.exec(text)?.[1] ?? "";
  return { name, text: text.replaceAll(/\s+/g, " ").trim(), sizeOf, isDivisible };
}

/** Returns the GraphQL fields of a page of nodes. */
export function pageOf(nodeFields: string): string {
  return `pageInfo { hasNextPage endCursor } nodes { ${nodeFields} }`;
}

export type NoVariables = Record<string, never>;

interface PageVariables {
  first: number;
  after: string | null;
  /** A filter in the platform's search syntax; null for everything. */
  query: string | null;
}

type ListData<Node> = Record<string, NodePage<Node> | null>;

/** A query that reads a root connection page by page. */
export interface ListOperation<Node> extends Operation<PageVariables, ListData<Node>> {
  /** The connection's name in the data. */
  field: string;
  /** The same query, but for gids only. This query can read an object even if another field of the object fails. */
  gids: Operation<PageVariables, ListData<Node>>;
  /** The same query, but without any field. This query moves past an object that cannot be read at all. */
  rows: Operation<PageVariables, ListData<Node>>;
  /** Returns the gid of the object that a node is about; undefined if the node lacks that gid. */
  gidOf(node: Partial<Node>): string | undefined;
  /** Returns a filter for this node and all later nodes of the list; undefined if the node has no value to sort by. */
  filterFrom(node: Node): string | undefined;
}

/** Maximum number of nodes on a page of the platform. */
export const MAX_PAGE_SIZE = 250;

const FILTERS: Record<string, (node: { id?: string; createdAt?: string; updatedAt?: string }) => string | undefined> = {
  CREATED_AT: ({ createdAt }) => createdAt && `created_at:>='${createdAt}'`,
  UPDATED_AT: ({ updatedAt }) => updatedAt && `updated_at:>='${updatedAt}'`,
  ID: ({ id }) => id && `id:>=${id.replace(/.*\//, "")}`,
};

/**
 * Makes a list query.
 * @param contractField the field with the contract of a node. If given, `gidOf` returns the contract's gid
 */
export function listOperation<Node extends object>(
  name: string,
  field: string,
  sortKey: keyof typeof FILTERS,
  nodeFields: string,
  contractField?: keyof Node & string,
): ListOperation<Node> {
  const listOf = (queryName: string, fields: string) =>
    operation<PageVariables, ListData<Node>>(
      `query ${queryName}($first: Int!, $after: String, $query: String) {
        ${field}(first: $first, after: $after, query: $query, sortKey: ${sortKey}) { ${pageOf(fields)} } }`,
      ({ first }) => first,
      ({ first }) => first > 1,
    );
  return {
    ...listOf(name, nodeFields),
    field,
    gids: listOf(`${name}Gids`, contractField === undefined ? "id" : `${contractField} { id }`),
    rows: listOf(`${name}Rows`, "__typename"),
    gidOf: (node) => ((contractField === undefined ? node : node[contractField]) as Partial<Gid> | null)?.id,
    filterFrom: (node) => FILTERS[sortKey]?.(node),
  };
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
