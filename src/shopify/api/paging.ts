import { PlatformError } from "./platform-error.ts";

/** A page of a connection of the platform's API. */
export interface NodePage<T> {
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
  nodes: T[];
}

/**
 * Returns the next page's cursor, undefined on the last page.
 * @throws PlatformError for a missing or repeated cursor
 */
export function nextCursor(
  { pageInfo: { hasNextPage, endCursor } }: NodePage<unknown>,
  cursor: string | null,
): string | undefined {
  if (!hasNextPage) return undefined;
  if (endCursor !== null && endCursor !== cursor) return endCursor;
  throw new PlatformError("refused", "the platform's next page has no cursor of its own");
}

/** Maximum number of nodes, and of pages. Without this limit, an endless connection would fill the memory. */
const MAX_NODES = 2_000;

/** Returns the nodes of all pages. @param fetchPage returns undefined if the object is gone @throws PlatformError */
export async function allNodes<T>(
  first: NodePage<T>,
  fetchPage: (after: string) => Promise<NodePage<T> | undefined>,
): Promise<T[]> {
  const nodes = [...first.nodes];
  let pageCount = 1;
  for (let after = nextCursor(first, null); after !== undefined; ) {
    const page = await fetchPage(after);
    if (page === undefined) break;
    nodes.push(...page.nodes);
    pageCount += 1;
    // The pages are counted too, because pages can be empty.
    if (Math.max(nodes.length, pageCount) > MAX_NODES)
      throw new PlatformError("refused", "the platform's list of an object does not end");
    after = nextCursor(page, after);
  }
  return nodes;
}
