import type { CursorProblem, SdsError } from "../../domain/error.ts";
import type { CheckpointScope, Checkpoints } from "../../domain/pages/checkpoint.ts";
import { formatCursor, type Position, parseCursor } from "../../domain/pages/cursor.ts";
import { isRowName, namedRow } from "../../domain/pages/row-filter.ts";
import { RESOURCES, type Resource } from "../../domain/resources.ts";
import type { Log } from "../../lib/log.ts";
import { type Awaitable, andThen } from "../../lib/waits.ts";
import type { KeyOwner } from "../../store/port/keys.ts";
import type { ChangePage, RowPage } from "../../store/port/pages.ts";
import type { Store } from "../../store/port/store.ts";
import type { PageInfo } from "../answers.ts";
import { refusals } from "../refusals.ts";
import { respondNotFound } from "../respond.ts";
import { queryOf, type RouteHandler, urlPathOf } from "../routes.ts";
import { isStrict, type ListQuery, readListQuery, readRowQuery } from "./list-query.ts";
import type { Content, ReadApi } from "./read-api.ts";

const BEGIN = '{"data":[';
const encoder = new TextEncoder();

interface ListDependencies {
  pagesFor: Store["pagesFor"];
  checkpoints: Checkpoints;
  api: ReadApi;
  /** Base URL of links; null for links without protocol and host. */
  publicUrl: string | null;
  log: Log;
}

/** GET /api/v1/{resource}: answers with a page of stored rows, newest first or in the order of their changes. */
export function createListHandler(resource: Resource, dependencies: ListDependencies): RouteHandler {
  const { pagesFor, checkpoints, api, publicUrl, log } = dependencies;
  const refuseCheckpoint = checkpointRefusals(resource, log);
  /**
   * Reads a page in the order of the list.
   * @param after position after which the page begins; null for the first page
   */
  function readList(
    url: string,
    owner: KeyOwner,
    { limit, filter, form }: ListQuery,
    after: Position | null,
  ): Awaitable<Content> {
    const { shopId, branch } = owner;
    const pages = pagesFor(owner);
    const found =
      filter === undefined
        ? pages.list(shopId, form, limit, after)
        : pages.listFiltered(shopId, form, filter, limit, after);
    return andThen(found, (page) => {
      if (page === undefined) throw refusals.badCursor("not_issued");
      const nextCursor = page.end === null ? null : formatCursor(page.end);
      return contentOf(
        { url, publicUrl },
        limit,
        page,
        nextCursor,
        checkpoints.format({ shopId, resource, branch }, page.changeCount),
      );
    });
  }

  /** Reads a page of changes. @param after number of the last change that the client knows */
  function readChanges(
    url: string,
    owner: KeyOwner,
    { limit, filter = {}, form }: ListQuery,
    after: number,
  ): Awaitable<Content> {
    const { shopId, branch } = owner;
    return andThen(pagesFor(owner).changes(shopId, form, filter, limit, after), (page) => {
      // The client knows a change that this database does not have.
      if (after > page.changeCount) throw refuseCheckpoint(owner, "restored");
      const checkpoint = checkpoints.format({ shopId, resource, branch }, page.reached);
      return contentOf({ url, publicUrl }, limit, page, page.hasMore ? checkpoint : null, checkpoint);
    });
  }

  return (request, context) =>
    api.answer(request, context, (admitted) => {
      const { url } = request;
      const query = readListQuery(queryOf(url), resource, admitted.firstDomain, isStrict(request));
      if (query.since !== undefined || query.updatedSince !== undefined) {
        return (owner) =>
          andThen(
            changeNamed(checkpoints, { ...owner, resource }, query, (each) => refuseCheckpoint(owner, each)),
            (named) =>
              andThen(named ?? pagesFor(owner).changeBefore(owner.shopId, query.updatedSince ?? 0), (after) =>
                readChanges(url, owner, query, after),
              ),
          );
      }
      const after = query.cursor === undefined ? null : parseCursor(query.cursor);
      if (after === undefined) throw refusals.badCursor("not_issued");
      if (after !== null && !isRowName(resource, after.id)) throw refusals.badCursor(problemOfId(after.id));
      return (owner) => readList(url, owner, query, after);
    });
}

/**
 * Returns a function that refuses a checkpoint. If the database lost changes that a reader has, the function logs a
 * warning, once for each shop.
 */
function checkpointRefusals(resource: Resource, log: Log): (owner: KeyOwner, reason: CursorProblem) => SdsError {
  const logged = new Set<number>();
  return ({ shopId, domain }, reason) => {
    if (reason === "restored" && !logged.has(shopId)) {
      logged.add(shopId);
      log.warn("a reader has changes that the database lost in a restore or a failover", { shop: domain, resource });
    }
    return refusals.badCheckpoint(reason);
  };
}

/** GET /api/v1/{resource}/{id}: answers with one row, by its internal id or its gid. */
export function createRowHandler(resource: Resource, pagesFor: Store["pagesFor"], api: ReadApi): RouteHandler {
  return (request, context) => {
    const { id: name } = context;
    if (!isRowName(resource, name)) return respondNotFound();
    return api.answer(request, context, ({ firstDomain }) => {
      const form = readRowQuery(queryOf(request.url), resource, isStrict(request));
      const named = namedRow(resource, name, firstDomain) ?? {};
      return (owner) =>
        andThen(pagesFor(owner).find(owner.shopId, form, named), (row) => {
          if (row === undefined) throw refusals.noRow(resource);
          return { body: encoder.encode(row.json), snapshot: row, headers: {} };
        });
    });
  };
}

/**
 * Returns the number of the change after which a page begins; undefined if the query has a time instead.
 * @throws SdsError, or rejects with it, if the checkpoint or cursor is not valid
 */
function changeNamed(
  checkpoints: Checkpoints,
  scope: CheckpointScope,
  { since, cursor }: ListQuery,
  refuseCheckpoint: (reason: CursorProblem) => SdsError,
): Awaitable<number | undefined> {
  const begin = since === undefined ? undefined : numberOf(checkpoints, scope, since, refuseCheckpoint);
  if (cursor === undefined) return begin;
  return andThen(begin, (first = 0) =>
    andThen(numberOf(checkpoints, scope, cursor, refusals.badCursor), (number) => {
      if (number < first) throw refusals.badCursor("not_issued");
      return number;
    }),
  );
}

/** Returns the number of a checkpoint's change. @throws SdsError, or rejects with it, if the text is not valid */
function numberOf(
  checkpoints: Checkpoints,
  scope: CheckpointScope,
  text: string,
  refused: (reason: CursorProblem) => SdsError,
): Awaitable<number> {
  const number = checkpoints.parse(scope, text);
  if (number !== undefined) return number;
  return checkpoints.parseFormer(scope, text).then((found) => {
    if (typeof found === "number") return found;
    throw refused(found);
  });
}

/**
 * Says why a cursor's row cannot belong to this list. Does not search the rows of other shops. Otherwise a client could
 * guess ids and dates, and learn which rows other shops have.
 */
function problemOfId(id: string): CursorProblem {
  return RESOURCES.some((other) => isRowName(other, id)) ? "other_resource" : "not_issued";
}

function contentOf(
  { url, publicUrl }: { url: string; publicUrl: string | null },
  limit: number,
  page: RowPage | ChangePage,
  nextCursor: string | null,
  checkpoint: string,
): Content {
  return {
    body: concatBytes(BEGIN, page.rows, `],"page":${JSON.stringify({ limit, nextCursor } satisfies PageInfo)}}`),
    snapshot: page,
    headers: {
      "X-Checkpoint": checkpoint,
      ...(nextCursor !== null && { Link: `<${publicUrl ?? ""}${nextPage(url, nextCursor)}>; rel="next"` }),
    },
  };
}

/** Returns the path and the query of the next page (RFC 8288). Encodes `#`, because a plain `#` would end the query. */
function nextPage(url: string, cursor: string): string {
  const parameters = queryOf(url)
    .replaceAll("#", "%23")
    .split("&")
    .filter((parameter) => parameter !== "" && !/^cursor(=|$)/.test(parameter));
  return `${urlPathOf(url)}?${[...parameters, `cursor=${encodeURIComponent(cursor)}`].join("&")}`;
}

/** Puts ASCII text before and after the rows. Copies nothing if the buffer has space on both sides of the rows. */
function concatBytes(begin: string, rows: Uint8Array<ArrayBuffer>, end: string): Uint8Array<ArrayBuffer> {
  const buffer = Buffer.from(rows.buffer);
  const first = rows.byteOffset - begin.length;
  const last = rows.byteOffset + rows.byteLength;
  if (first < 0 || last + end.length > buffer.length)
    return Buffer.concat([Buffer.from(begin), rows, Buffer.from(end)]);
  buffer.write(begin, first);
  buffer.write(end, last);
  return buffer.subarray(first, last + end.length);
}
