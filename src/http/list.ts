import { formatCursor, parseCursor } from "../domain/cursor.ts";
import { SdsError } from "../domain/error.ts";
import type { Resource } from "../domain/resources.ts";
import { hasAccess } from "../domain/shop.ts";
import type { PageStore } from "../store/pages.ts";
import type { ApiKeyAuthenticator } from "./api-key-authenticator.ts";
import { respond } from "./respond.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 250;
const PAGE_HEADERS = { "Cache-Control": "private, no-cache", Vary: "Authorization" };
const BEGIN = '{"data":[';

export type ListHandler = (resource: Resource, request: Request) => Promise<Response>;

/** The read API: a key, a shop, a page of ready rows, bytes (contract.md 1). */
export function listHandler(pages: PageStore, authenticator: ApiKeyAuthenticator): ListHandler {
  return async (resource, request) => {
    const owner = await authenticator.authenticate(request.headers.get("authorization"));
    if (!hasAccess(owner.plan)) {
      throw new SdsError(
        "plan_required",
        "This shop's plan has no API access: it comes with the Pro plan, and with the Free plan through the API and webhooks add-on.",
      );
    }
    const { limit, cursor } = readQuery(request.url);
    const after = cursor === undefined ? null : parseCursor(cursor);
    const page = after === undefined ? undefined : await pages.list(owner.shopId, resource, limit, after);
    if (page === undefined)
      throw new SdsError("bad_cursor", "The cursor is not one that this resource's pages gave. Pass nextCursor on as it came, URL-encoded.");
    const nextCursor = page.end === null ? null : formatCursor(page.end);
    const body = enclose(BEGIN, page.rows, `],"page":${JSON.stringify({ limit, nextCursor })}}`);
    return respond(200, body, PAGE_HEADERS);
  };
}

/** Puts ASCII around rows: over what else their buffer holds, mostly, for a page is many kilobytes to copy. */
function enclose(begin: string, rows: Uint8Array<ArrayBuffer>, end: string): Uint8Array<ArrayBuffer> {
  const buffer = Buffer.from(rows.buffer);
  const first = rows.byteOffset - begin.length;
  const last = rows.byteOffset + rows.byteLength;
  if (first < 0 || last + end.length > buffer.length) return Buffer.concat([Buffer.from(begin), rows, Buffer.from(end)]);
  buffer.write(begin, first);
  buffer.write(end, last);
  return buffer.subarray(first, last + end.length);
}

/** Of a parameter given twice the last counts; unknown ones are ignored. */
function readQuery(url: string): { limit: number; cursor: string | undefined } {
  const start = url.indexOf("?");
  if (start === -1) return { limit: DEFAULT_LIMIT, cursor: undefined };
  const query = new URLSearchParams(url.slice(start + 1));
  return { limit: readLimit(query.getAll("limit").at(-1)), cursor: query.getAll("cursor").at(-1) };
}

/** What is no whole number above zero is the default, and never an error (service.md "Common query parameters"). */
function readLimit(text: string | undefined): number {
  const limit = text !== undefined && /^[0-9]+$/.test(text) ? Number(text) : 0;
  return limit > 0 ? Math.min(limit, MAX_LIMIT) : DEFAULT_LIMIT;
}
