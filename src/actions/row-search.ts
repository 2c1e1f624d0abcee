import { invalid } from "../domain/error.ts";
import { formatCursor, parseCursor } from "../domain/pages/cursor.ts";
import { FILTERS, isRowName, type NamedRow, namedRow, type RowFilter, readFilter } from "../domain/pages/row-filter.ts";
import { RESOURCES, type Resource } from "../domain/resources.ts";
import type { MirroredShop } from "../domain/shop.ts";
import type { PageStore } from "../store/port/pages.ts";

const GID_OBJECTS: Record<Resource, string> = {
  subscriptions: "SubscriptionContract",
  customers: "Customer",
  orders: "Order",
};
const NUMBER = /^#?([1-9][0-9]{0,19})$/;
const LINKS = ["customerId", "contractId"] as const;

/** Returns the gid of a row. @param number as the platform's admin shows it */
export function gidOfNumber(resource: Resource, number: string): string {
  return `gid://shopify/${GID_OBJECTS[resource]}/${number}`;
}

/** Returns the resource that an internal id or a gid names. */
export function resourceNamed(text: string): Resource | undefined {
  return RESOURCES.find((resource) => isRowName(resource, text));
}

/**
 * Finds the internal id of a row.
 * @param resource the kind of row, if `typed` is a number
 * @param typed an internal id, a gid, or a number such as `1042` or `#1042`
 * @returns undefined if the shop has no such row
 */
export async function findRowId(
  pages: PageStore,
  shop: MirroredShop,
  resource: Resource,
  typed: string,
): Promise<string | undefined> {
  const [, number] = NUMBER.exec(typed) ?? [];
  const text = number === undefined ? typed : gidOfNumber(resource, number);
  const named = resourceNamed(text);
  if (named === undefined) return undefined;
  const name: NamedRow | undefined = namedRow(named, text, shop.firstDomain);
  const row = name === undefined ? undefined : await pages.find(shop.id, named, name);
  return row === undefined ? undefined : (JSON.parse(row.json) as { id: string }).id;
}

/** Reads a filter by customer or by subscription from a page's URL. @throws SdsError `invalid` */
export function readLinkFilter(
  query: URLSearchParams,
  resource: Resource,
  { firstDomain }: MirroredShop,
): RowFilter | undefined {
  for (const name of LINKS) {
    const text = query.get(name);
    if (text === null || !(FILTERS[resource] as readonly string[]).includes(name)) continue;
    const filter = readFilter(resource, name, text, firstDomain);
    if (filter === undefined) throw invalid("The address names no customer or subscription.");
    return filter;
  }
  return undefined;
}

/** Rows of a page, and the cursor of the next older page; null on the last page. */
export interface RowList {
  rows: unknown[];
  older: string | null;
}

/**
 * Reads a page of rows, the newest first.
 * @param cursor where the page begins; undefined for the first page
 * @returns undefined for a cursor of another shop or resource
 */
export async function listRows(
  pages: PageStore,
  { id }: MirroredShop,
  resource: Resource,
  { filter, cursor, limit }: { filter?: RowFilter | undefined; cursor?: string | undefined; limit: number },
): Promise<RowList | undefined> {
  const after = cursor === undefined ? null : parseCursor(cursor);
  if (after === undefined || (after !== null && !isRowName(resource, after.id))) return undefined;
  const page =
    filter === undefined
      ? await pages.list(id, resource, limit, after)
      : await pages.listFiltered(id, resource, filter, limit, after);
  if (page === undefined) return undefined;
  const rows = JSON.parse(`[${new TextDecoder().decode(page.rows)}]`) as unknown[];
  return { rows, older: page.end === null ? null : formatCursor(page.end) };
}
