import { ApiError } from "./api-error.ts";
import type { Requester } from "./requester.ts";

/** Maximum number of rows in a page if `limit` is not set. The server accepts no larger limit. */
const DEFAULT_LIMIT = 250;

/** One page of a list or of changes. */
export interface Page<Row> {
  /** May be shorter than the limit, or empty, although more pages follow. */
  rows: Row[];
  /** Names the state of the shop's data that this page shows. Pass the checkpoint to `changes` later. */
  checkpoint: string;
  /** Null on the last page. */
  nextCursor: string | null;
}

/** Options of each call, in addition to its filters. */
export interface ReadOptions {
  /** Maximum number of rows in a page, 1 to 250. 250 by default. */
  limit?: number;
  /** An abort of this signal ends the call, which then throws the signal's reason. */
  signal?: AbortSignal;
}

/** Asks for the custom fields of subscriptions. */
export interface IncludeFields {
  include: readonly ["customFields"];
}

/** Reads one resource. All functions throw ApiError, ConnectionError, or the reason of the signal. */
export interface ResourceReader<Row, Filter> {
  /** Returns all rows, newest first. A row that exists at the start comes exactly once, even if rows change. */
  rows(query?: Filter & ReadOptions): AsyncIterable<Row>;
  /** Returns all rows in pages. To begin after a page, pass its `nextCursor` as `cursor`. */
  pages(query?: Filter & ReadOptions & { cursor?: string }): AsyncIterable<Page<Row>>;
  /**
   * Returns pages of all rows that changed since a checkpoint, in the order of their changes. Store the rows of a page
   * first, and then its checkpoint. A row can come twice, each time in its newest state.
   * @param since the checkpoint of a page, or a time. A time can also bring changes of the minute before
   */
  changes(since: string | Date, query?: Filter & ReadOptions): AsyncIterable<Page<Row>>;
  /** Returns one row. @param id internal id or gid. @returns undefined for an unknown id */
  get(id: string, options?: { signal?: AbortSignal }): Promise<Row | undefined>;
}

/** @param name the last part of the resource's path */
export function createResourceReader<Row, Filter extends object>(
  name: string,
  request: Requester,
): ResourceReader<Row, Filter> {
  type Query = Filter & ReadOptions;

  async function read(options: ReadOptions & Partial<IncludeFields>): Promise<Page<Row>> {
    const { limit = DEFAULT_LIMIT, signal, include, ...filter } = options;
    const filters = Object.entries(filter).map(([parameter, value]) => [parameter, textsOf(parameter, value)]);
    const query = { ...Object.fromEntries(filters), ...includeQuery(include), limit: String(limit) };
    const { headers, body } = await request(name, query, signal);
    return readPage<Row>(headers, body);
  }

  async function* pages(query?: Query & { cursor?: string }): AsyncGenerator<Page<Row>> {
    let page = await read({ ...query });
    yield page;
    while (page.nextCursor !== null) {
      const cursor = page.nextCursor;
      page = await read({ ...query, ...{ cursor } });
      if (page.nextCursor === cursor) throw stoppedShort();
      yield page;
    }
  }

  async function* rows(query?: Query): AsyncGenerator<Row> {
    for await (const page of pages(query)) yield* page.rows;
  }

  async function* changes(since: string | Date, query?: Query): AsyncGenerator<Page<Row>> {
    let from = typeof since === "string" ? { since } : { updatedSince: since.toISOString() };
    for (;;) {
      const page = await read({ ...query, ...from });
      yield page;
      if (page.nextCursor === null) return;
      if ("since" in from && from.since === page.checkpoint) throw stoppedShort();
      from = { since: page.checkpoint };
    }
  }

  async function get(
    id: string,
    { signal, include }: { signal?: AbortSignal } & Partial<IncludeFields> = {},
  ): Promise<Row | undefined> {
    try {
      const path = `${name}/${encodeURIComponent(textOf("id", id))}`;
      const { headers, body } = await request(path, includeQuery(include), signal);
      if (typeof body === "object" && body !== null && "id" in body) return body as Row;
      throw notOfSds("The answer is not a row of sds. Is the address right?", headers);
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.code === "not_found") return undefined;
      throw thrown;
    }
  }

  return { rows, pages, changes, get };
}

/** @throws TypeError */
function includeQuery(include: readonly string[] | undefined): { include?: string } {
  if (include === undefined) return {};
  if (Array.isArray(include) && include.length > 0) return { include: include.join(",") };
  throw new TypeError('include must be ["customFields"]');
}

/** Reads the value or values of a filter. @throws TypeError for an empty list and for a missing value */
function textsOf(parameter: string, value: unknown): string | string[] {
  if (!Array.isArray(value) || value.length === 0) return textOf(parameter, value);
  return value.map((one) => textOf(parameter, one));
}

/** @throws TypeError for undefined or an empty text: without its filter, the request would list all rows */
function textOf(parameter: string, value: unknown): string {
  if (typeof value === "string" && value !== "") return value;
  throw new TypeError(`${parameter} must be a text that is not empty`);
}

/** @throws ApiError if the answer is not a page of `sds` */
function readPage<Row>(headers: Headers, body: unknown): Page<Row> {
  const { data, page } = (body ?? {}) as { data?: Row[]; page?: { nextCursor?: unknown } };
  const nextCursor = page?.nextCursor;
  if (!Array.isArray(data) || !data.every(isRow) || (nextCursor !== null && !isFilled(nextCursor)))
    throw notOfSds("The answer is not a page of sds. Is the address right?", headers);
  const checkpoint = headers.get("x-checkpoint");
  if (!isFilled(checkpoint))
    throw notOfSds("The answer has no X-Checkpoint. The server is older than this client.", headers);
  return { rows: data, checkpoint, nextCursor };
}

function isFilled(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function isRow(value: unknown): boolean {
  return typeof value === "object" && value !== null && isFilled((value as { id?: unknown }).id);
}

/** Error for a server that repeats a page and promises more rows. Without this error, a read would never end. */
function stoppedShort(): ApiError {
  return notOfSds("The server says that more rows follow, and gives the same page again.", new Headers());
}

function notOfSds(problem: string, headers: Headers): ApiError {
  const requestId = headers.get("x-request-id");
  return new ApiError(problem, { status: 200, code: "", reason: undefined, requestId, retryAfterMs: undefined });
}
