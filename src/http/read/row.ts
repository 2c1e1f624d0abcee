import { isRowName, namedRow } from "../../domain/pages/row-filter.ts";
import type { Resource } from "../../domain/resources.ts";
import { andThen } from "../../lib/waits.ts";
import type { PageStore } from "../../store/port/pages.ts";
import { refusals } from "../refusals.ts";
import { respondNotFound } from "../respond.ts";
import { queryOf, type RouteHandler } from "../route.ts";
import { checkNoParameters, isStrict } from "./list-query.ts";
import type { ReadApi } from "./read-api.ts";

const encoder = new TextEncoder();

/**
 * GET /api/v1/{resource}/{id}: answers with one row, by its internal id or its gid. Any other last part of the path is
 * answered with 404.
 */
export function createRowHandler(resource: Resource, pages: PageStore, api: ReadApi): RouteHandler {
  return (request, context) => {
    const name = context.id;
    if (!isRowName(resource, name)) return respondNotFound();
    return api.answer(request, context, ({ domain }) => {
      checkNoParameters(queryOf(request.url), isStrict(request));
      const named = namedRow(resource, name, domain) ?? {};
      return ({ shopId }) =>
        andThen(pages.find(shopId, resource, named), (row) => {
          if (row === undefined) throw refusals.noRow(resource);
          return { body: encoder.encode(row.json), changeCount: row.changeCount, headers: {} };
        });
    });
  };
}
