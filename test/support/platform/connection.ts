import { GraphQLError } from "graphql";
import type { Kind, Row, RowOf } from "./rows.ts";
import { matches, readSearch } from "./search-query.ts";
import type { ShopRows } from "./shop-rows.ts";
import { sortValue } from "./sorted-rows.ts";

const MAX_PAGE_SIZE = 250;

export interface PageArguments {
  first?: number | null;
  last?: number | null;
  after?: string | null;
  before?: string | null;
  reverse?: boolean | null;
  query?: string | null;
  sortKey?: string | null;
}

interface Edge<T> {
  node: T;
  cursor: string;
}

export interface Connection<T> {
  nodes: T[];
  edges: Edge<T>[];
  pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean; startCursor: string | null; endCursor: string | null };
}

/** The number of nodes on the page. */
function pageSize({ first, last, before }: PageArguments): number {
  if (typeof last === "number" || typeof before === "string")
    throw new GraphQLError("the stand-in has no pages counted from the end: use first and after");
  if (typeof first !== "number") throw new GraphQLError("you must provide one of first or last");
  if (first < 1 || first > MAX_PAGE_SIZE) throw new GraphQLError(`first has to be between 1 and ${MAX_PAGE_SIZE}`);
  return first;
}

/**
 * Makes a page of items. It reads one item more than the page has, to know whether there is a next page. Cursors are
 * computed only on demand, because that takes longer than the rest.
 */
function pageOf<T>(
  items: Iterable<T>,
  args: PageArguments,
  cursorOf: (item: T) => () => string,
  maxPageRows = Number.POSITIVE_INFINITY,
): Connection<T> {
  const size = Math.min(pageSize(args), maxPageRows);
  const edges: Edge<T>[] = [];
  let hasNextPage = false;
  for (const node of items) {
    hasNextPage = edges.length === size;
    if (hasNextPage) break;
    edges.push(lazyEdge(node, cursorOf(node)));
  }
  const pageInfo = {
    hasNextPage,
    hasPreviousPage: typeof args.after === "string",
    get startCursor() {
      return edges[0]?.cursor ?? null;
    },
    get endCursor() {
      return edges.at(-1)?.cursor ?? null;
    },
  };
  return { nodes: edges.map(({ node }) => node), edges, pageInfo };
}

function lazyEdge<T>(node: T, writeIt: () => string): Edge<T> {
  return {
    node,
    get cursor() {
      return writeIt();
    },
  };
}

function writeCursor(sortKey: string, value: number | string, n: number): string {
  return Buffer.from(JSON.stringify([sortKey, value, n])).toString("base64");
}

function readCursor(cursor: string, sortKey: string): { value: number | string; n: number } {
  const [, key = "", value = "null", n = ""] =
    /^\["(\w+)",(.+),(\d+)\]$/.exec(Buffer.from(cursor, "base64").toString()) ?? [];
  if (key !== sortKey) throw new GraphQLError("Invalid cursor for current pagination sort.");
  return { value: JSON.parse(value) as number | string, n: Number(n) };
}

/** A page of all rows of a kind, sorted and filtered. */
export function rowsPage<K extends Kind>(
  shop: ShopRows,
  kind: K,
  args: PageArguments,
  unknown: (what: string) => void,
): Connection<RowOf[K]> {
  const sortKey = args.sortKey ?? "ID";
  const sorted = shop.inOrder(kind, sortKey);
  if (sorted === undefined) throw new GraphQLError(`the stand-in cannot sort by ${sortKey}`);
  const conditions = readSearch(args.query ?? "", unknown, shop.firstId);
  const { rows } = sorted;
  const reverse = args.reverse ?? false;
  let from = 0;
  let to = rows.length;
  for (const { sortKey: key, comparison, value } of conditions) {
    if (key !== sortKey) continue;
    if (comparison.startsWith(">")) from = Math.max(from, sorted.countBefore({ value, n: -1 }));
    if (comparison.startsWith("<")) to = Math.min(to, sorted.countBefore({ value, n: Number.POSITIVE_INFINITY }));
  }
  if (reverse) from = Math.max(from, to - shop.maxRows);
  else to = Math.min(to, from + shop.maxRows);
  if (typeof args.after === "string") {
    const position = readCursor(args.after, sortKey);
    if (reverse) to = Math.min(to, sorted.countBefore(position));
    else from = Math.max(from, sorted.countBefore(position, true));
  }
  function* matching(): Generator<Row> {
    for (let step = from; step < to; step++) {
      const row = rows[reverse ? to - 1 - (step - from) : step];
      if (row !== undefined && conditions.every((condition) => matches(row, condition, sortValue))) yield row;
    }
  }
  const cursorOf = (row: Row) => {
    // Read now, because the row can move before somebody asks for its cursor.
    const value = sortValue(row, sortKey);
    return () => writeCursor(sortKey, value, row.n);
  };
  return pageOf(matching() as Iterable<RowOf[K]>, args, cursorOf, shop.maxPageRows);
}

export function countRows(
  shop: ShopRows,
  kind: Kind,
  { query, limit }: { query?: string | null; limit?: number | null },
  unknown: (what: string) => void,
) {
  const conditions = readSearch(query ?? "", unknown);
  const { length } = (shop.inOrder(kind, "ID")?.rows ?? []).filter((row) =>
    conditions.every((condition) => matches(row, condition, sortValue)),
  );
  const most = limit ?? Number.POSITIVE_INFINITY;
  return { count: Math.min(length, most), precision: length > most ? "AT_LEAST" : "EXACT" };
}

/** A page of a short list. The key of an item stays the same when other items come and go. */
export function listPage<T>(items: readonly T[], args: PageArguments, keyOf: (item: T) => number): Connection<T> {
  const ordered = args.reverse === true ? items.toReversed() : items;
  let from = 0;
  if (typeof args.after === "string") {
    const { n } = readCursor(args.after, "KEY");
    from = ordered.findIndex((item) => keyOf(item) === n) + 1;
  }
  return pageOf(ordered.slice(from), args, (item) => {
    const key = keyOf(item);
    return () => writeCursor("KEY", 0, key);
  });
}

/** A page of items that are made on demand, one for each number. The range may be endless. */
export function numbersPage<T>(
  from: number,
  to: number,
  args: PageArguments,
  make: (index: number) => T,
): Connection<T> {
  const reverse = args.reverse === true;
  if (reverse && to === Number.POSITIVE_INFINITY)
    throw new GraphQLError("the cycles of the stand-in have no end, so they cannot be reversed without a range");
  const after = typeof args.after === "string" ? readCursor(args.after, "KEY").n : undefined;
  const start = after === undefined ? (reverse ? to : from) : after + (reverse ? -1 : 1);
  let latest = start;
  function* made(): Generator<T> {
    for (let index = start; index >= from && index <= to; index += reverse ? -1 : 1) {
      latest = index;
      yield make(index);
    }
  }
  return pageOf(made(), args, () => {
    const index = latest;
    return () => writeCursor("KEY", 0, index);
  });
}
