import type { HeaderObject, JsonSchema, OpenApiParameter, Ref } from "./parts.ts";

const REQUEST_ID = "7b1f5f0e-3c1d-4c8e-9f57-0d3c2b6a1e44";

/** The response headers that the document describes. */
export const HEADERS = {
  "X-Request-Id": header("An id of this request. It is in the log if something failed.", REQUEST_ID, {
    schema: { type: "string", format: "uuid" },
  }),
  "X-Content-Type-Options": header("Browsers must not guess another type.", "nosniff"),
  "Cache-Control": header("How long the answer may be kept.", "private, no-cache"),
  Vary: header("The headers of the request that the answer depends on.", "Authorization"),
  "X-Checkpoint": header(
    "The state of the shop that the page shows. Pass it as `since` to get what changed after it.",
    `2026-02-01T00:00:10.000Z~chg_${"a".repeat(24)}`,
  ),
  ETag: header(
    "Pass it as `If-None-Match`: the answer is 304, without a body, while nothing changed.",
    'W/"1-42-9f57"',
  ),
  Link: header(
    "The address of the next page, if there is one (RFC 8288). Resolve it against that of the request.",
    '</api/v1/orders?limit=50>; rel="next"',
    {
      required: false,
    },
  ),
  "Access-Control-Allow-Origin": header("Scripts of all sites may read the answer.", "*"),
  RateLimit: header("What is left of the limit, if there is one.", '"default";r=199;t=1', { required: false }),
  "RateLimit-Policy": header("The limit, if there is one.", '"default";q=200;w=2', { required: false }),
  "Retry-After": header("Seconds to wait before the next try.", 1, { schema: { type: "integer", minimum: 1 } }),
  "WWW-Authenticate": header("The scheme of the key.", "Bearer"),
  Connection: header("`close` where the rest of the body was not read.", "close", { required: false }),
} satisfies Record<string, HeaderObject>;
export type HeaderName = keyof typeof HEADERS;

/** The headers of every JSON response. */
export const COMMON: readonly HeaderName[] = ["X-Request-Id", "X-Content-Type-Options", "Cache-Control"];

function header(
  description: string,
  example: string | number,
  { required = true, schema = { type: "string" } }: { required?: boolean; schema?: JsonSchema } = {},
): HeaderObject {
  return { description, required, schema, example };
}

export function headerRefs(names: readonly HeaderName[]): Record<string, Ref> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

export function headerParameter(
  name: string,
  description: string,
  schema: JsonSchema,
  required = true,
): OpenApiParameter {
  return { name, in: "header", required, description, schema };
}
