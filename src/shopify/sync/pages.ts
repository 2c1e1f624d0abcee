import type { ListPosition } from "../../domain/platform/sync.ts";
import type { ShopAddress } from "../api/address.ts";
import { type BatchSizes, MAX_FAILURES_IN_A_ROW, settledItems } from "../api/batches.ts";
import type { GraphqlClient } from "../api/graphql-client.ts";
import { type ListOperation, MAX_PAGE_SIZE } from "../api/operations/operation.ts";
import { type NodePage, nextCursor } from "../api/paging.ts";
import { isPlatformError, PlatformError } from "../api/platform-error.ts";

/** A page, and the position to continue after it. */
export interface ReadPage<T> {
  nodes: T[];
  /** Objects that the platform cannot send completely. All other objects of the page are in `nodes`. */
  unread: UnreadObject[];
  /** The errors of objects that the platform cannot send at all, not even their gids. */
  lost: PlatformError[];
  endCursor: string | null;
  /** The list that `endCursor` belongs to. */
  list: ListPosition;
  /** When the page was requested, epoch milliseconds. This can be long ago, because pages are requested in advance. */
  requestedAt: number;
}

export interface UnreadObject {
  gid: string;
  error: PlatformError;
}

export interface PageSource {
  client: GraphqlClient;
  sizes: BatchSizes;
  /** The platform's time. */
  now: () => number;
}

interface Start {
  after?: string | null;
  /** A filter in the platform's search syntax, on the value that the list is sorted by; null for everything. */
  query?: string | null;
  /** The list that `after` belongs to; by default, the list of `query`. */
  list?: ListPosition | undefined;
  /** Called before reading restarts at the first page, although an earlier run has read some pages. */
  onRestart?: () => void;
}

/** Maximum number of empty pages in a row. Without it, an error of the platform could make us read for ever. */
const MAX_EMPTY_PAGES = 100;
/** Number of rows after which a new list of the later rows begins. The platform ends a list after 25,000 rows. */
const MAX_ROWS = 20_000;

/**
 * Reads all pages. The next page is requested while the caller works on the current one. If the platform refuses
 * `after`, reading begins at the first page.
 * @throws PlatformError
 */
export async function* readPages<T extends object>(
  source: PageSource,
  shop: ShopAddress,
  operation: ListOperation<T>,
  { after = null, query = null, list = { filter: query, rowCount: 0 }, onRestart = () => {} }: Start,
): AsyncGenerator<ReadPage<T>> {
  const request = createPageRequest(source, shop, operation);
  const chain = createChain(operation, list.rowCount);
  let position: RowPosition = { after, query: list.filter };

  /** Requests the first page if the stored cursor is refused. The data may have changed since the last run. */
  function requestAll(thrown: unknown): ReturnType<typeof request> {
    if (after === null || !isPlatformError(thrown, "refused") || thrown.status !== 200) throw thrown;
    position = { after: null, query };
    chain.restart();
    onRestart();
    return request(position);
  }

  const passed = new Set<string>();
  let emptyPages = 0;
  let pending: ReturnType<typeof request> | undefined = request(position).catch(requestAll);
  while (pending !== undefined) {
    const read: Awaited<ReturnType<typeof request>> = await pending;
    const end = nextCursor(read.page, position.after);
    if (end !== undefined && passed.has(end)) {
      throw new PlatformError("refused", "the platform repeats the same pages");
    }
    passed.add(end ?? "");
    emptyPages = read.page.nodes.length + read.unread.length + read.lost.length === 0 ? emptyPages + 1 : 0;
    if (emptyPages > MAX_EMPTY_PAGES) throw new PlatformError("refused", "the platform's empty pages do not end");
    const current = position;
    const nodes = chain.newNodes(read.page.nodes);
    const currentList = { filter: current.query, rowCount: chain.rowCount() };
    position = chain.next({ after: end ?? null, query: current.query });
    if (position.query !== current.query) passed.clear();
    pending = end === undefined ? undefined : request(position);
    // The next round awaits the request. If the caller fails before that, this line prevents an unhandled rejection.
    pending?.catch(() => undefined);
    const { unread, lost, requestedAt } = read;
    yield { nodes, unread, lost, endCursor: read.page.pageInfo.endCursor, list: currentList, requestedAt };
  }
}

interface RowPosition {
  after: string | null;
  query: string | null;
}

/**
 * Follows a list, and begins a new list before the platform ends the old list.
 * @param readBefore how many rows an earlier run read
 */
function createChain<T extends object>({ filterFrom }: ListOperation<T>, readBefore: number) {
  let rowCount = readBefore;
  /** The filter for the last row and all later rows, and the ids of the rows so far that this filter matches. */
  let last: { filter: string | null; ids: Set<unknown> } = { filter: null, ids: new Set() };
  let known: ReadonlySet<unknown> = new Set();
  return {
    rowCount: () => rowCount,
    restart() {
      rowCount = 0;
    },
    /** Counts all given rows. Returns the rows that were not at the end of the previous list. */
    newNodes(nodes: T[]): T[] {
      rowCount += nodes.length;
      for (const node of nodes) {
        const filter = filterFrom(node) ?? null;
        if (filter !== last.filter) last = { filter, ids: new Set() };
        if ("id" in node) last.ids.add(node.id);
      }
      return nodes.filter((node) => !("id" in node && known.has(node.id)));
    },
    next(position: RowPosition): RowPosition {
      if (rowCount < MAX_ROWS || last.filter === null || last.filter === position.query) return position;
      rowCount = 0;
      known = last.ids;
      return { after: null, query: last.filter };
    },
  };
}

interface PageAnswer<T> {
  page: NodePage<T>;
  unread: UnreadObject[];
  lost: PlatformError[];
  requestedAt: number;
}

/**
 * Makes a function that requests pages. The platform refuses a page that costs too many points, or has a bad object.
 * Then half of the page is requested, until the bad object is alone. Then only its gid is requested. If this request
 * fails too, the object is passed over.
 */
function createPageRequest<T extends object>(
  { client, sizes, now }: PageSource,
  shop: ShopAddress,
  operation: ListOperation<T>,
): (position: RowPosition) => Promise<PageAnswer<T>> {
  /** Number of next rows that contain a bad row; 0 if no bad row is known. */
  let suspectCount = 0;
  let unreadInARow = 0;

  async function ask(position: RowPosition, first: number): Promise<PageAnswer<T>> {
    const askedAt = now();
    const { page, unread } = await client.query(shop, operation, { ...position, first }).then(
      (data) => ({ page: listOf(data, operation), unread: [] }),
      (thrown: unknown) => answeredPart(thrown, operation),
    );
    // If our clock was ahead, the answer has corrected it. Then `askedAt` can be later than `now()`.
    return { page, unread, lost: [], requestedAt: Math.min(askedAt, now()) };
  }

  async function askForGid(position: RowPosition, error: PlatformError): Promise<PageAnswer<T>> {
    const variables = { ...position, first: 1 };
    try {
      const { nodes, pageInfo } = listOf(await client.query(shop, operation.gids, variables), operation);
      const gids = nodes.flatMap((node) => operation.gidOf(node) ?? []);
      const unread = gids.map((gid) => ({ gid, error }));
      return { page: { nodes: [], pageInfo }, unread, lost: [], requestedAt: now() };
    } catch (thrown) {
      if (!isPlatformError(thrown, "incomplete")) throw thrown;
    }
    const { nodes, pageInfo } = listOf(await client.query(shop, operation.rows, variables), operation);
    return { page: { nodes: [], pageInfo }, unread: [], lost: nodes.map(() => error), requestedAt: now() };
  }

  async function askHalving(position: RowPosition): Promise<PageAnswer<T>> {
    for (;;) {
      const size = sizes.of(shop, operation.name, MAX_PAGE_SIZE);
      const first = suspectCount === 0 ? size : Math.min(size, Math.ceil(suspectCount / 2));
      try {
        const answer = await ask(position, first);
        suspectCount = Math.max(0, suspectCount - first);
        return answer;
      } catch (thrown) {
        if (!(thrown instanceof PlatformError)) throw thrown;
        if (thrown.isTooCostly && first > 1) {
          sizes.halve(shop, operation.name, first);
          continue;
        }
        if (thrown.reason !== "incomplete") throw thrown;
        suspectCount = first > 1 ? first : 0;
        if (first === 1) return askForGid(position, thrown);
      }
    }
  }

  return async (position) => {
    const answer = await askHalving(position);
    const { page, unread, lost } = answer;
    const errors = [...unread.map(({ error }) => error), ...lost];
    unreadInARow = page.nodes.length > 0 ? 0 : unreadInARow + errors.length;
    if (errors.length > 0 && unreadInARow > MAX_FAILURES_IN_A_ROW) throw errors[0];
    return answer;
  };
}

/** Returns the list in the data. @throws PlatformError if the data does not have the list */
function listOf<T>(data: Record<string, NodePage<T> | null>, { field }: { field: string }): NodePage<T> {
  const { nodes, pageInfo }: Partial<NodePage<T>> = data[field] ?? {};
  if (!Array.isArray(nodes) || pageInfo === undefined) {
    throw new PlatformError("refused", `the platform's answer has no list of ${field}`);
  }
  // The platform may send null for a node that it cannot read.
  return { nodes: nodes.filter((node) => typeof node === "object" && node !== null), pageInfo };
}

/** Divides an incomplete page into complete nodes and unread objects. @throws the error, if a failed node has no gid */
function answeredPart<T extends object>(
  thrown: unknown,
  operation: ListOperation<T>,
): { page: NodePage<T>; unread: UnreadObject[] } {
  if (!isPlatformError(thrown, "incomplete")) throw thrown;
  const data = thrown.partial?.data as Record<string, NodePage<T | null> | null> | undefined;
  const page = data?.[operation.field];
  const results = settledItems<T | null>(thrown, operation.field, "nodes");
  if (results === undefined || page?.pageInfo === undefined) throw thrown;
  const unread = results.flatMap((result, index) => {
    if (result.status === "fulfilled") return [];
    const gid = operation.gidOf(page.nodes[index] ?? {});
    if (gid === undefined) throw thrown;
    return [{ gid, error: result.reason as PlatformError }];
  });
  const nodes = results.flatMap((result) => (result.status === "fulfilled" && result.value ? [result.value] : []));
  return { page: { nodes, pageInfo: page.pageInfo }, unread };
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
