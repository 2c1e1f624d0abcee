import { PlatformError } from "./platform-error.ts";

/** A page of a connection, as the platform's API has them. */
export interface Page<T> {
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
  nodes: T[];
}

/**
 * The cursor of the page behind this one; undefined behind the last.
 * @param cursor of this page, null for the first
 * @throws PlatformError for a cursor that stands still: it would be followed for ever
 */
export function nextCursor({ pageInfo: { hasNextPage, endCursor } }: Page<unknown>, cursor: string | null): string | undefined {
  if (!hasNextPage) return undefined;
  if (endCursor !== null && endCursor !== cursor) return endCursor;
  throw new PlatformError("refused", "the platform's pages lead nowhere");
}

/** What is behind the first page of a connection. @param ask gives the page behind a cursor, or undefined if there is none any more */
export async function restOf<T>(first: Page<T>, ask: (after: string) => Promise<Page<T> | undefined>): Promise<T[]> {
  const rest: T[] = [];
  for (let after = nextCursor(first, null); after !== undefined; ) {
    const page = await ask(after);
    if (page === undefined) break;
    rest.push(...page.nodes);
    after = nextCursor(page, after);
  }
  return rest;
}
