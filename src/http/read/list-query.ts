import type { TObject } from "@sinclair/typebox";
import { SdsError } from "../../domain/error.ts";
import { FILTERS, type FilterName, type RowFilter, readFilter, STATUSES } from "../../domain/pages/row-filter.ts";
import { Customer, Order, RESOURCES, type Resource, Subscription } from "../../domain/resources.ts";
import { parseUtc } from "../../lib/time.ts";
import { MAX_PAGE_ROWS, type RowForm } from "../../store/port/pages.ts";

export const DEFAULT_LIMIT = 50;
const PAGING = ["limit", "cursor", "since", "updatedSince"] as const;
/** The only value of the parameter `include`. Only subscriptions have this parameter. */
export const INCLUDED = "customFields";
const KNOWN = [...new Set(RESOURCES.flatMap(parametersOf))];
/** Each known parameter by its `plain` spelling. A misspelt parameter is compared with these spellings. */
const SPELLINGS = new Map(KNOWN.map((name) => [plain(name), name]));
/**
 * Parameters that may be given several times. The last `limit` and the last `cursor` are used. If several `status` are
 * given, a row needs one of them.
 */
const REPEATABLE = ["limit", "cursor", "status"];

/**
 * Names of paging, sorting and filtering parameters in other APIs, normalised by `plain`. They are grouped by our
 * parameter for the same purpose. The group "" has names for which we have no parameter. We refuse all these names.
 * Otherwise a client that sends `page=N` would get the first page again and again.
 */
const FOREIGN = namesByUse({
  limit:
    "pagesize perpage itemsperpage resultsperpage recordsperpage pagelimit size count top take first last max " +
    "maxresults maxitems rows num length batchsize",
  cursor:
    "page pages p pg pageno pagenum pagenumber pageindex pagetoken pageinfo pagekey pageoffset pageafter pagebefore " +
    "pagecursor currentpage offset skip skiptoken start startat startkey startingafter endingbefore after before " +
    "exclusivestartkey sinceid fromid maxid lastid lastkey next nexttoken nextpage nextcursor continuation " +
    "continuationtoken marker bookmark scroll scrollid iterator",
  updatedSince:
    "updatedat updatedatmin minupdatedat updatedafter updatedfrom modifiedsince modifiedafter changedsince " +
    "ifmodifiedsince lastmodified lastupdated sincedate",
  shopifyId: "id ids gid gids shopifyids",
  status: "state statuses statusin orderstatus subscriptionstatus contractstatus financialstatus",
  customerId: "customer customers customerids",
  contractId: "contract contracts contractids subscription subscriptions subscriptionid subscriptionids",
  "":
    "sort sortby sortkey sortorder order orderby direction dir asc desc reverse email customeremail phone name q " +
    "query search statusnot filter filters where from to until begin end date startdate enddate starttime endtime " +
    "datefrom dateto",
});
/** Names of time filters in other APIs, such as `created_at_min`, normalised by `plain`. We refuse these names too. */
const FOREIGN_TIME = new RegExp(
  "^(created|updated|modified|processed|started|billed|nextbilling|cancelled)" +
    "(at|on|date)?(min|max|after|before|since|from|to|[gl]te?)?$",
);
const FIELDS: Record<Resource, ReadonlySet<string>> = {
  subscriptions: plainKeys(Subscription),
  customers: plainKeys(Customer),
  orders: plainKeys(Order),
};

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
  form: RowForm;
}

const ALL_ROWS = { since: undefined, updatedSince: undefined, filter: undefined };

/** The query that clients usually send. Only the colons of its cursor need decoding. */
const USUAL_QUERY = /^limit=([0-9]+)(?:&cursor=((?:[\w.~:-]|%3A)+))?$/;

/**
 * Reads a query. If `limit` or `cursor` is repeated, the last value is used.
 * @param domain the shop's domain
 * @param isStrict whether unknown parameters are refused too
 * @throws SdsError `bad_parameter`, which names the parameter
 */
export function readListQuery(text: string, resource: Resource, domain: string, isStrict: boolean): ListQuery {
  const [, usualLimit, usualCursor] = USUAL_QUERY.exec(text) ?? [];
  if (usualLimit !== undefined) {
    const cursor = usualCursor?.replaceAll("%3A", ":");
    return { ...ALL_ROWS, limit: readLimit(usualLimit), cursor, form: resource };
  }
  const parameters = new URLSearchParams(text);
  const query = new Map(parameters);
  for (const name of query.keys()) {
    checkName(name, resource, isStrict);
    if (KNOWN.includes(name) && !REPEATABLE.includes(name)) requireOne(parameters, name);
  }
  if (query.has("since") && query.has("updatedSince"))
    throw new SdsError("bad_parameter", "send since or updatedSince, not both");
  return {
    limit: readLimit(query.get("limit")),
    cursor: query.get("cursor"),
    since: query.get("since"),
    updatedSince: readTime(query.get("updatedSince")),
    filter: readFilters(parameters, resource, domain),
    form: readForm(parameters, resource),
  };
}

/** Whether a request asks us to refuse unknown parameters (RFC 7240, section 4.4). */
export function isStrict(request: Request): boolean {
  const preferences = request.headers.get("prefer");
  return preferences !== null && /(^|,)\s*handling\s*=\s*("strict"|strict)\s*(;|,|$)/i.test(preferences);
}

/**
 * Reads the query of one row. Only subscriptions have a parameter: `include`. Refuses a misspelt `include`. Other
 * parameters are ignored, or refused if the request is strict.
 * @throws SdsError `bad_parameter`
 */
export function readRowQuery(text: string, resource: Resource, isStrictRequest: boolean): RowForm {
  if (text === "") return resource;
  if (!parametersOf(resource).includes("include")) {
    checkNoParameters(text, isStrictRequest);
    return resource;
  }
  const parameters = new URLSearchParams(text);
  for (const name of parameters.keys()) {
    if (name === "include") continue;
    if (nearestTo(name) === "include") throw unknown(name, "it is spelt include");
    if (isStrictRequest) throw unknown(name, "one row has only include");
  }
  return readForm(parameters, resource);
}

/**
 * Checks the query of an address that takes no parameters. Refuses `include`, because a client that sends it expects
 * more fields. Other parameters are ignored, or refused if the request is strict.
 * @throws SdsError `bad_parameter`
 */
export function checkNoParameters(text: string, isStrictRequest: boolean): void {
  for (const name of new URLSearchParams(text).keys())
    if (isStrictRequest || nearestTo(name) === "include") throw unknown(name, "this address has no parameters");
}

function parametersOf(resource: Resource): readonly string[] {
  return [...PAGING, ...FILTERS[resource], ...(resource === "subscriptions" ? ["include"] : [])];
}

function checkName(name: string, resource: Resource, isStrictRequest: boolean): void {
  const names = parametersOf(resource);
  if (names.includes(name)) return;
  const near = nearestTo(name);
  if (near !== undefined && near !== name && names.includes(near)) throw unknown(name, `it is spelt ${near}`);
  const ours = foreignUse(name, resource);
  if (ours !== undefined && names.includes(ours)) throw unknown(name, `use ${ours}`);
  // If we ignored a filter that only other lists have, the client would get all rows without an error.
  if (near !== undefined || ours !== undefined || isStrictRequest)
    throw unknown(name, `${resource} have the parameters ${names.join(", ")}`);
}

/**
 * Returns our parameter that replaces a parameter of other APIs; empty if we have no such parameter. For `page[size]`,
 * `page.size` and `status__in`, looks up the whole name and then its first word.
 * @returns undefined for a name that other APIs do not use
 */
function foreignUse(name: string, resource: Resource): string | undefined {
  for (const text of [plain(name), plain(name.replace(/([[.]|__).*/, ""))]) {
    const ours = FOREIGN.get(text) ?? SPELLINGS.get(text);
    if (ours !== undefined) return ours;
    if (FOREIGN_TIME.test(text) || FIELDS[resource].has(text)) return "";
  }
  return undefined;
}

function namesByUse(uses: Record<string, string>): Map<string, string> {
  return new Map(Object.entries(uses).flatMap(([use, names]) => names.split(" ").map((name) => [name, use] as const)));
}

function plainKeys({ properties }: TObject): ReadonlySet<string> {
  return new Set(Object.keys(properties).map(plain));
}

/**
 * Returns the known parameter that equals a name except for case, punctuation or one letter.
 * @returns undefined if there is no such parameter
 */
function nearestTo(name: string): string | undefined {
  const text = plain(name);
  const same = SPELLINGS.get(text);
  if (same !== undefined) return same;
  for (const [spelling, known] of SPELLINGS) if (differByOneLetter(text, spelling)) return known;
  return undefined;
}

/** Whether one text becomes the other text if one letter is added, removed or replaced. */
function differByOneLetter(one: string, other: string): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  let equal = 0;
  while (equal < short.length && short[equal] === long[equal]) equal += 1;
  const isReplaced = short.length === long.length;
  return short.slice(isReplaced ? equal + 1 : equal) === long.slice(equal + 1);
}

function unknown(name: string, known: string): SdsError {
  return new SdsError("bad_parameter", `there is no parameter ${shown(name)}: ${known}`);
}

/** Returns a name without case and punctuation, and without the `amp;` of an address that was copied from HTML. */
function plain(name: string): string {
  return name.toLowerCase().replace(/^amp;|[^a-z0-9]/g, "");
}

/** Quotes a text from a request in an error message. Shortens the text, and replaces characters outside of ASCII. */
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

function requireOne(parameters: URLSearchParams, name: string): void {
  if (parameters.getAll(name).length > 1)
    throw new SdsError("bad_parameter", `the parameter ${name} is given more than once`);
}

function readForm(parameters: URLSearchParams, resource: Resource): RowForm {
  requireOne(parameters, "include");
  const value = parameters.get("include");
  if (value === null) return resource;
  if (value !== INCLUDED)
    throw new SdsError("bad_parameter", `the parameter include is ${shown(value)}: it must be ${INCLUDED}`);
  return "subscriptionsWithFields";
}

function readFilters(parameters: URLSearchParams, resource: Resource, domain: string): RowFilter | undefined {
  let filter: RowFilter | undefined;
  for (const name of FILTERS[resource]) {
    for (const text of parameters.getAll(name)) {
      const read = name === "status" ? withStatus(filter, resource, text) : readFilter(resource, name, text, domain);
      if (read === undefined)
        throw new SdsError(
          "bad_parameter",
          `the parameter ${name} is ${shown(text)}: it must be ${RULES[name](resource)}`,
        );
      filter = { ...filter, ...read };
    }
  }
  return filter;
}

/** Adds a status to a filter. @returns undefined for a status that the resource does not have */
function withStatus(filter: RowFilter | undefined, resource: Resource, status: string): RowFilter | undefined {
  if (!(STATUSES[resource] as readonly string[]).includes(status)) return undefined;
  return { statuses: [...new Set([...(filter?.statuses ?? []), status])] };
}

const RULES: Record<FilterName, (resource: Resource) => string> = {
  shopifyId: (resource) => `an id or a gid of ${resource}`,
  customerId: () => "the id or the gid of a customer",
  contractId: () => "the id or the gid of a subscription",
  status: (resource) => `one of ${STATUSES[resource].join(", ")}`,
};
