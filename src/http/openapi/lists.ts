import { type TObject, Type } from "@sinclair/typebox";
import { formatCursor } from "../../domain/pages/cursor.ts";
import { FILTERS, type FilterName, STATUSES } from "../../domain/pages/row-filter.ts";
import { RESOURCES, type Resource } from "../../domain/resources.ts";
import { MAX_PAGE_ROWS } from "../../store/port/pages.ts";
import { ANSWER_SCHEMAS, PageInfo, type ShopAnswer } from "../answers.ts";
import { DEFAULT_LIMIT, INCLUDED } from "../read/list-query.ts";
import { refusalRefs, type SharedRefusal } from "./errors.ts";
import { COMMON, type HeaderName, headerParameter, headerRefs } from "./headers.ts";
import {
  type JsonSchema,
  jsonBody,
  type Media,
  type OpenApiDocument,
  type OpenApiOperation,
  type OpenApiParameter,
} from "./parts.ts";
import { DOMAIN, sampleRows } from "./sample-rows.ts";

/** The names of each resource in texts and types, and the field by which its list is sorted. */
const NAMES = {
  subscriptions: { one: "subscription", type: "Subscription", tag: "Subscriptions", sortField: "startedAt" },
  customers: { one: "customer", type: "Customer", tag: "Customers", sortField: "createdAt" },
  orders: { one: "order", type: "Order", tag: "Orders", sortField: "billedAt" },
} as const;

const ROW_HEADERS: readonly HeaderName[] = [...COMMON, "Vary", "ETag", "RateLimit", "RateLimit-Policy"];
const PAGE_HEADERS: readonly HeaderName[] = [...ROW_HEADERS, "X-Checkpoint", "Link"];
const REFUSALS: readonly SharedRefusal[] = ["Unauthorized", "PlanRequired", "RateLimited", "Internal", "Unavailable"];

/** Returns the schema of a page of each resource, for `components.schemas`. */
export function pageSchemas(): TObject[] {
  return RESOURCES.map((resource) =>
    Type.Object(
      { data: Type.Array(ANSWER_SCHEMAS[resource], { maxItems: MAX_PAGE_ROWS }), page: PageInfo },
      { title: `${NAMES[resource].type}Page`, description: `A page of ${resource}.` },
    ),
  );
}

/** Returns the paths of the read API. */
export function listPaths(): OpenApiDocument["paths"] {
  const resources = RESOURCES.flatMap((resource) => [
    [`/api/v1/${resource}`, { get: listOperation(resource) }],
    [`/api/v1/${resource}/{id}`, { get: rowOperation(resource) }],
  ]);
  return { ...Object.fromEntries(resources), "/api/v1/shop": { get: shopOperation() } };
}

function listOperation(resource: Resource): OpenApiOperation {
  const { type, tag, sortField } = NAMES[resource];
  return {
    operationId: `list${tag}`,
    tags: [tag],
    summary: `List ${resource}`,
    description:
      `A page of ${resource}, newest first by \`${sortField}\`. With \`since\` or \`updatedSince\`: those that ` +
      "changed since then, in the order of their changes. A page can have fewer rows than `limit`, or none, although " +
      "more follow: `nextCursor` says whether they do.",
    parameters: [
      query("limit", LIMIT, { type: "integer", default: DEFAULT_LIMIT }),
      query("cursor", "`nextCursor` of the page before, unchanged. All other parameters stay the same."),
      query("since", "A checkpoint: `X-Checkpoint` of an earlier answer of this list. Lists what changed after it."),
      query("updatedSince", UPDATED_SINCE, { type: "string", format: "date-time" }),
      ...filters(resource),
      ...includes(resource),
      PREFER,
      IF_NONE_MATCH,
    ],
    responses: {
      ...answers(`A page of ${resource}.`, PAGE_HEADERS, jsonBody(`${type}Page`, samplePage(resource))),
      ...refusalRefs(["BadPageRequest", ...REFUSALS]),
    },
  };
}

function rowOperation(resource: Resource): OpenApiOperation {
  const { one, type, tag } = NAMES[resource];
  return {
    operationId: `get${type}`,
    tags: [tag],
    summary: `Get ${one === "order" ? "an" : "a"} ${one}`,
    description: `One ${one}, as it is in the list.`,
    parameters: [
      {
        name: "id",
        in: "path",
        required: true,
        description: "`id`, or `shopifyId`, URL-encoded or with its slashes.",
        schema: { type: "string" },
        example: sampleRows()[resource].id,
      },
      ...includes(resource),
      PREFER,
      IF_NONE_MATCH,
    ],
    responses: {
      ...answers(`The ${one}.`, ROW_HEADERS, jsonBody(type, sampleRows()[resource])),
      ...refusalRefs(["BadRowRequest", "NotFound", ...REFUSALS]),
    },
  };
}

function shopOperation(): OpenApiOperation {
  const sample: ShopAnswer = { domain: DOMAIN, plan: "pro", currency: "USD" };
  return {
    operationId: "getShop",
    tags: ["Shop"],
    summary: "Get the shop",
    description: "The shop that the API key belongs to.",
    parameters: [PREFER, IF_NONE_MATCH],
    responses: {
      ...answers("The shop.", ROW_HEADERS, jsonBody("Shop", sample)),
      ...refusalRefs(["BadRowRequest", ...REFUSALS]),
    },
  };
}

function answers(description: string, names: readonly HeaderName[], content: Record<string, Media>) {
  const headers = headerRefs(names);
  return {
    200: { description, headers, content },
    304: { description: "Nothing changed since the answer with that `ETag`.", headers },
  };
}

const LIMIT =
  `The most rows of the page. A number above ${MAX_PAGE_ROWS} counts as ${MAX_PAGE_ROWS}. Anything but a whole ` +
  `number above zero counts as ${DEFAULT_LIMIT}, and is not refused.`;
const UPDATED_SINCE =
  "Lists what changed since a date and time in UTC, ending in `Z`. It can begin up to a minute early, and never late.";
const PREFER = headerParameter(
  "Prefer",
  "`handling=strict`: a parameter that is not known is refused, and not ignored (RFC 7240).",
  { type: "string", enum: ["handling=strict", "handling=lenient"] },
  false,
);
const IF_NONE_MATCH = headerParameter(
  "If-None-Match",
  "`ETag` of an earlier answer to the same request: while nothing changed, the answer is 304.",
  { type: "string" },
  false,
);

function filters(resource: Resource): OpenApiParameter[] {
  const id = (whose: string) => ({ of: `of this ${whose}: internal id or gid`, schema: { type: "string" } });
  const filter: Record<FilterName, { of: string; schema: JsonSchema }> = {
    shopifyId: id(NAMES[resource].one),
    customerId: id("customer"),
    contractId: id("subscription"),
    status: {
      of: "with this status; with several (`status=A&status=B`), those with any of them",
      schema: { type: "array", items: { type: "string", enum: STATUSES[resource] } },
    },
  };
  return FILTERS[resource].map((name) => query(name, `Only rows ${filter[name].of}.`, filter[name].schema));
}

function includes(resource: Resource): OpenApiParameter[] {
  const description = "Adds `customFields` to each row: the values of the shop's own fields.";
  return resource === "subscriptions" ? [query("include", description, { type: "string", enum: [INCLUDED] })] : [];
}

function query(name: string, description: string, schema: JsonSchema = { type: "string" }): OpenApiParameter {
  return { name, in: "query", required: false, description, schema };
}

/** Makes a page with one sample row and a cursor to the next page. */
function samplePage(resource: Resource): object {
  const { sortField } = NAMES[resource];
  const row: { id: string; startedAt?: string; createdAt?: string; billedAt?: string } = sampleRows()[resource];
  const nextCursor = formatCursor({ at: Date.parse(row[sortField] ?? ""), id: row.id });
  return { data: [row], page: { limit: 1, nextCursor } };
}
