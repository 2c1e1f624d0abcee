import type { ShopAddress } from "../api/address.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import type { ListOperation, PageVariables } from "../api/operations/operation.ts";
import { type NodePage, nextCursor } from "../api/paging.ts";
import { isPlatformError, PlatformError } from "../api/platform-error.ts";

/** A page, and the cursor to continue after it. */
export interface ReadPage<T> {
  nodes: T[];
  endCursor: string | null;
  /** When the page was requested, epoch milliseconds. This can be long ago, because pages are requested in advance. */
  requestedAt: number;
}

interface Start extends Partial<PageVariables> {
  /** Called before reading restarts at the first page, although an earlier run has read some pages. */
  onRestart?: () => void;
}

/** Limit for empty pages in a row. Without it, an error of the platform could make us read for ever. */
const MAX_EMPTY_PAGES = 100;

/**
 * Reads all pages. The next page is requested while the caller works on the current one. @throws PlatformError
 * @param start `query` is in the platform's search syntax. If the platform refuses `after`, all pages are read.
 */
export async function* readPages<T>(
  client: GraphqlClient,
  shop: ShopAddress,
  operation: ListOperation<T>,
  { after = null, query = null, onRestart = () => {} }: Start,
  now: () => number,
): AsyncGenerator<ReadPage<T>> {
  async function request(cursor: string | null): Promise<{ page: NodePage<T>; requestedAt: number }> {
    const askedAt = now();
    const data = await client.query(shop, operation, { after: cursor, query });
    // Our clock may be ahead, and only the answer corrects it.
    const requestedAt = Math.min(askedAt, now());
    const { nodes, pageInfo }: Partial<NodePage<T>> = data[operation.field] ?? {};
    if (!Array.isArray(nodes) || pageInfo === undefined) {
      throw new PlatformError("refused", `the platform's answer has no list of ${operation.field}`);
    }
    // The platform may send null for a node that it cannot read.
    const objects = nodes.filter((node) => typeof node === "object" && node !== null);
    return { page: { nodes: objects, pageInfo }, requestedAt };
  }

  let current = after;

  /** Requests the first page if the stored cursor is refused: the platform's data may have changed since. */
  function requestAll(thrown: unknown): ReturnType<typeof request> {
    if (after === null || !isPlatformError(thrown, "refused") || thrown.status !== 200) throw thrown;
    current = null;
    onRestart();
    return request(null);
  }

  const passed = new Set<string>();
  let emptyPages = 0;
  let pending: ReturnType<typeof request> | undefined = request(current).catch(requestAll);
  while (pending !== undefined) {
    const { page, requestedAt }: Awaited<ReturnType<typeof request>> = await pending;
    const next = nextCursor(page, current);
    if (next !== undefined && passed.has(next)) {
      throw new PlatformError("refused", "the platform's pages go round in a circle");
    }
    passed.add(next ?? "");
    emptyPages = page.nodes.length === 0 ? emptyPages + 1 : 0;
    if (emptyPages > MAX_EMPTY_PAGES) throw new PlatformError("refused", "the platform's empty pages do not end");
    pending = next === undefined ? undefined : request(next);
    // The next round awaits the request. If the caller fails before, this prevents an unhandled rejection.
    pending?.catch(() => undefined);
    yield { nodes: page.nodes, endCursor: page.pageInfo.endCursor, requestedAt };
    current = next ?? null;
  }
}

/**
 * Works on two pages at a time, and finishes them one after another, in their order.
 * @throws errors of `work` and `finish`, after all begun work has ended
 */
export async function workOnTwo<P, R>(
  pages: AsyncIterable<P>,
  work: (page: P) => Promise<R>,
  finish: (page: P, result: R) => Promise<void>,
): Promise<void> {
  let hasFailed = false;
  async function workAfter(before: Promise<void>, page: P): Promise<void> {
    const result = await work(page);
    await before;
    await finish(page, result);
  }

  let last = Promise.resolve();
  try {
    for await (const page of pages) {
      if (hasFailed) break;
      const before = last;
      last = workAfter(before, page);
      last.catch(() => {
        hasFailed = true;
      });
      await before;
    }
    await last;
  } finally {
    await Promise.allSettled([last]);
  }
}
