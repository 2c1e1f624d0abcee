import { requireAccess } from "../actions/access.ts";
import { formatCursor, parseCursor } from "../domain/cursor.ts";
import { SdsError } from "../domain/error.ts";
import type { Resource } from "../domain/resources.ts";
import type { ReaderQueue } from "../lib/reader-queue.ts";
import { MAX_PAGE_ROWS, type PageStore } from "../store/pages.ts";
import type { ApiKeyAuthenticator } from "./api-key-authenticator.ts";
import { isLarge, type LargePages } from "./large-page.ts";
import { respond } from "./respond.ts";
import { queryOf, type RouteHandler } from "./route.ts";

const DEFAULT_LIMIT = 50;
const PAGE_HEADERS = { "Cache-Control": "private, no-cache", Vary: "Authorization" };
const BEGIN = '{"data":[';

/**
 * GET /api/v1/{resource}: checks the key, the plan and the query, in this order, and answers with a page of stored
 * rows.
 */
export function createListHandler(
  resource: Resource,
  pages: PageStore,
  authenticator: ApiKeyAuthenticator,
  readers: ReaderQueue,
  largePages: LargePages,
): RouteHandler {
  return async (request, { client }) => {
    const authenticate = async () => {
      const owner = await authenticator.authenticate(request.headers.get("authorization"), client);
      requireAccess(owner, "API access");
      return owner;
    };
    let owner = await authenticate();
    const { limit, cursor } = readQuery(request.url);
    const after = cursor === undefined ? null : parseCursor(cursor);
    const turn = readers.enter();
    if (turn !== undefined) {
      await turn;
      // Meanwhile the key may have been revoked, or the removal of the shop may have begun.
      owner = await authenticate();
    }
    const page = after === undefined ? undefined : await pages.list(owner.shopId, resource, limit, after);
    if (page === undefined) {
      throw new SdsError(
        "bad_cursor",
        "The cursor is not from a page of this resource. Pass nextCursor on unchanged, URL-encoded.",
      );
    }
    const nextCursor = page.end === null ? null : formatCursor(page.end);
    const body = enclose(BEGIN, page.rows, `],"page":${JSON.stringify({ limit, nextCursor })}}`);
    if (isLarge(body)) {
      readers.noteLong();
      return largePages.respond(request, owner.shopId, body, PAGE_HEADERS);
    }
    return respond(200, turn === undefined && !pages.isLater ? body : streamOf(body), PAGE_HEADERS);
  };
}

/**
 * The body of an answer that comes in a later turn of the event loop than its request. Bun sends large bytes in dozens
 * of system calls then, one for each part of each header, and a stream in two.
 */
function streamOf(bytes: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(bytes);
      controller.close();
    },
  });
}

/**
 * Puts ASCII text before and after the rows. If their buffer has space on both sides, it writes there, because copying
 * a page of many kilobytes takes time. It overwrites what the buffer had there.
 */
function enclose(begin: string, rows: Uint8Array<ArrayBuffer>, end: string): Uint8Array<ArrayBuffer> {
  const buffer = Buffer.from(rows.buffer);
  const first = rows.byteOffset - begin.length;
  const last = rows.byteOffset + rows.byteLength;
  if (first < 0 || last + end.length > buffer.length)
    return Buffer.concat([Buffer.from(begin), rows, Buffer.from(end)]);
  buffer.write(begin, first);
  buffer.write(end, last);
  return buffer.subarray(first, last + end.length);
}

/** A query as nearly all clients send it: nothing in it but the colons of the cursor has to be decoded. */
const USUAL_QUERY = /^limit=([0-9]+)(?:&cursor=((?:[\w.~:-]|%3A)+))?$/;

/** The last of a repeated parameter counts. Unknown parameters are ignored. */
function readQuery(url: string): { limit: number; cursor: string | undefined } {
  const text = queryOf(url);
  const [, usualLimit, usualCursor] = USUAL_QUERY.exec(text) ?? [];
  if (usualLimit !== undefined) return { limit: readLimit(usualLimit), cursor: usualCursor?.replaceAll("%3A", ":") };
  const query = new URLSearchParams(text);
  return { limit: readLimit(query.getAll("limit").at(-1)), cursor: query.getAll("cursor").at(-1) };
}

/** Anything except a whole number above zero gives the default, never an error (docs/api.md, "Pagination"). */
function readLimit(text: string | undefined): number {
  const limit = text !== undefined && /^[0-9]+$/.test(text) ? Number(text) : 0;
  return limit > 0 ? Math.min(limit, MAX_PAGE_ROWS) : DEFAULT_LIMIT;
}
