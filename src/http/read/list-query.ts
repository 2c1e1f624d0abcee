import { SdsError } from "../../domain/error.ts";
import { FILTERS, type FilterName, type RowFilter, readFilter, STATUSES } from "../../domain/pages/row-filter.ts";
import { RESOURCES, type Resource } from "../../domain/resources.ts";
import { parseUtc } from "../../lib/time.ts";
import { MAX_PAGE_ROWS } from "../../store/port/pages.ts";

export const DEFAULT_LIMIT = 50;
const PAGING = ["limit", "cursor", "since", "updatedSince"] as const;
const KNOWN: readonly string[] = [...PAGING, ...new Set(RESOURCES.flatMap((resource) => FILTERS[resource]))];
/** The known parameters by their plain spelling. A refusal names the parameter that a request misspelt. */
const SPELLINGS = new Map([...KNOWN.map((name) => [plain(name), name] as const), ["pagesize", "limit"]]);

/** The parsed query of a list request. */
export interface ListQuery {
  limit: number;
  cursor: string | undefined;
  /** A checkpoint, from the parameter `since`. */
  since: string | undefined;
  /** Epoch milliseconds. */
  updatedSince: number | undefined;
  /** undefined for all rows. */
  filter: RowFilter | undefined;
}

/** The query that clients usually send. Only the colons of its cursor need decoding. */
const USUAL_QUERY = /^limit=([0-9]+)(?:&cursor=((?:[\w.~:-]|%3A)+))?$/;

/**
 * Reads a query. If a parameter is repeated, the last value counts.
 * @param domain of the shop
 * @param isStrict whether unknown parameters are refused too
 * @throws SdsError `bad_parameter` naming the parameter
 */
export function readListQuery(text: string, resource: Resource, domain: string, isStrict: boolean): ListQuery {
  const [, usualLimit, usualCursor] = USUAL_QUERY.exec(text) ?? [];
  if (usualLimit !== undefined) {
    const cursor = usualCursor?.replaceAll("%3A", ":");
    return { limit: readLimit(usualLimit), cursor, since: undefined, updatedSince: undefined, filter: undefined };
  }
  const query = new Map(new URLSearchParams(text));
  for (const name of query.keys()) checkName(name, resource, isStrict);
  if (query.has("since") && query.has("updatedSince"))
    throw new SdsError("bad_parameter", "send since or updatedSince, not both");
  return {
    limit: readLimit(query.get("limit")),
    cursor: query.get("cursor"),
    since: query.get("since"),
    updatedSince: readTime(query.get("updatedSince")),
    filter: readFilters(query, resource, domain),
  };
}

/** Whether a request asks us to refuse unknown parameters (RFC 7240, section 4.4). */
export function isStrict(request: Request): boolean {
  const preferences = request.headers.get("prefer");
  return preferences !== null && /(^|,)\s*handling\s*=\s*("strict"|strict)\s*(;|,|$)/i.test(preferences);
}

/** Checks the query of an address without parameters. @throws SdsError `bad_parameter` only for a strict request */
export function checkNoParameters(text: string, isStrictRequest: boolean): void {
  const [name] = isStrictRequest ? new URLSearchParams(text).keys() : [];
  if (name !== undefined) throw unknown(name, "this address has no parameters");
}

function checkName(name: string, resource: Resource, isStrictRequest: boolean): void {
  const names: readonly string[] = [...PAGING, ...FILTERS[resource]];
  if (names.includes(name)) return;
  // If we ignored this filter, the client would get all rows without noticing.
  if (KNOWN.includes(name)) throw unknown(name, `${resource} have ${names.join(", ")}`);
  const near = SPELLINGS.get(plain(name));
  if (near !== undefined) throw unknown(name, `it is spelt ${near}`);
  if (isStrictRequest) throw unknown(name, `${resource} have ${names.join(", ")}`);
}

function unknown(name: string, known: string): SdsError {
  return new SdsError("bad_parameter", `there is no parameter ${shown(name)}: ${known}`);
}

/** Returns a name without case and punctuation. */
function plain(name: string): string {
  return name.replace(/[_\-[\]]/g, "").toLowerCase();
}

/** Shortens a text from a request for an error message, and replaces characters that cannot be printed. */
function shown(text: string): string {
  const short = text.length > 64 ? `${text.slice(0, 64)}...` : text;
  return JSON.stringify(short.toWellFormed()).replace(/[\u007f-\u{10ffff}]/gu, "?");
}

/** Reads `limit`. Anything except a whole number above zero gives the default (docs/api.md, "Pagination"). */
function readLimit(text: string | undefined): number {
  const limit = text !== undefined && /^[0-9]+$/.test(text) ? Number(text) : 0;
  return limit > 0 ? Math.min(limit, MAX_PAGE_ROWS) : DEFAULT_LIMIT;
}

function readTime(text: string | undefined): number | undefined {
  const time = text === undefined ? undefined : parseUtc(text);
  if (text === undefined || time !== undefined) return time;
  throw new SdsError(
    "bad_parameter",
    `the parameter updatedSince is ${shown(text)}: it must be an ISO 8601 date in UTC, like 2026-01-31T09:30:00Z`,
  );
}

function readFilters(query: ReadonlyMap<string, string>, resource: Resource, domain: string): RowFilter | undefined {
  let filter: RowFilter | undefined;
  for (const name of FILTERS[resource]) {
    const text = query.get(name);
    if (text === undefined) continue;
    const read = readFilter(resource, name, text, domain);
    if (read === undefined)
      throw new SdsError(
        "bad_parameter",
        `the parameter ${name} is ${shown(text)}: it must be ${RULES[name](resource)}`,
      );
    filter = { ...filter, ...read };
  }
  return filter;
}

const RULES: Record<FilterName, (resource: Resource) => string> = {
  shopifyId: (resource) => `an id or a gid of ${resource}`,
  customerId: () => "the id or the gid of a customer",
  contractId: () => "the id or the gid of a subscription",
  status: (resource) => `one of ${STATUSES[resource].join(", ")}`,
};
