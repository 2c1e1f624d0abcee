import { RESOURCES, type Resource } from "../domain/resources.ts";
import type { Awaitable } from "../lib/waits.ts";
import type { Health } from "./answers.ts";
import { respond, respondNotFound, respondUnavailable } from "./respond.ts";

/** Facts about a request for its handler. */
export interface RouteContext {
  /**
   * The part of the path at `:id` or `:row`, decoded. A gid with plain slashes is joined from several parts. Empty if
   * the path has neither `:id` nor `:row`.
   */
  id: string;
  /** Returns the client's network. Limits treat a network as one client. Works behind trusted proxies too. */
  client: () => string;
  /** Whether the client's connection is https. Works behind trusted proxies too. */
  isSecure: () => boolean;
  /** The domain of the request's shop, for the log. Handlers set it after they have checked the request. */
  shop?: string;
}

export type RouteHandler = (request: Request, context: RouteContext) => Awaitable<Response>;

/** The methods that a route can take. */
export type Method = "GET" | "HEAD" | "POST";

/** One row of the table of routes: a path and its handlers. */
export interface Route {
  /**
   * The path is matched byte by byte, except placeholders and a final `*`. The `*` stands for anything, and `:id` for
   * letters, digits and `_`. Other placeholders stand for any part of a path, and the handler must check that part.
   */
  path: string;
  /** The name of the route in metrics and the log; by default the path. Several paths can have the same label. */
  label?: string;
  /** A request with another method gets 405, with these methods in `Allow`. */
  methods: Partial<Record<Method, RouteHandler>>;
}

export interface RouteHandlers {
  list: (resource: Resource) => RouteHandler;
  row: (resource: Resource) => RouteHandler;
  shop: RouteHandler;
  intake: RouteHandler;
  platformWebhook: RouteHandler;
  openApi: RouteHandler;
  widgetStyle: RouteHandler;
  /** The pages and forms below /admin. */
  admin: readonly Route[];
  /** The pages and forms below /app. */
  app: readonly Route[];
  /** The pages below /alerts. Links in e-mails open them. */
  alerts: readonly Route[];
  /** The pages and files below /docs. */
  docs: readonly Route[];
  /** Resolves to the reason if the program cannot take work now; otherwise to undefined. */
  notReady: () => Promise<string | undefined>;
}

/**
 * Patterns for the name of a row in a path: one part, or a gid with plain slashes. Many clients do not encode slashes
 * in a path, and some proxies merge two slashes.
 */
const ROW_PATHS = [":row", ":row//:vendor/:object/:number", ":row/:vendor/:object/:number"];

/** Makes the table of all served paths. Any other path gets 404. Any other method of a served path gets 405. */
export function createRoutes(handlers: RouteHandlers): Route[] {
  const { list, row, shop, intake, platformWebhook, openApi, widgetStyle, admin, app, alerts, docs, notReady } =
    handlers;
  const ready = async () => {
    const reason = await notReady();
    return reason === undefined ? health() : respondUnavailable(reason);
  };
  return [
    ...RESOURCES.flatMap((resource) => [
      { path: `/api/v1/${resource}`, methods: { GET: list(resource) } },
      ...ROW_PATHS.map((path) => ({
        path: `/api/v1/${resource}/${path}`,
        label: `/api/v1/${resource}/:row`,
        methods: { GET: row(resource) },
      })),
    ]),
    { path: "/api/v1/shop", methods: { GET: shop } },
    // Below /api, a wrong method gets 405 even if the path is unknown (docs/api.md, Errors).
    { path: "/api", methods: { GET: respondNotFound } },
    { path: "/api/*", methods: { GET: respondNotFound } },
    { path: "/intake", methods: { POST: intake } },
    { path: "/platform/webhooks", methods: { POST: platformWebhook } },
    { path: "/openapi.json", methods: { GET: openApi, HEAD: openApi } },
    { path: "/storefront/:row/widget.css", methods: { GET: widgetStyle, HEAD: widgetStyle } },
    ...admin,
    ...app,
    ...alerts,
    ...docs,
    { path: "/healthz", methods: { GET: health, HEAD: health } },
    { path: "/readyz", methods: { GET: ready, HEAD: ready } },
  ];
}

function health(): Response {
  return respond(200, JSON.stringify({ status: "ok" } satisfies Health), { "Cache-Control": "no-store" });
}

/** Returns path and query of a request's URL. Without a usable Host header, Bun's URL has only path and query. */
export function targetOf(url: string): string {
  return url.slice(targetStart(url));
}

/** Returns the path of a request's URL. */
export function urlPathOf(url: string): string {
  const start = targetStart(url);
  const end = url.indexOf("?", start);
  return url.slice(start, end === -1 ? undefined : end);
}

function targetStart(url: string): number {
  return url.startsWith("/") ? 0 : url.indexOf("/", url.indexOf("://") + 3);
}

/** Returns the query of a request's URL, without the `?`; empty if the URL has no query. */
export function queryOf(url: string): string {
  const start = url.indexOf("?");
  return start === -1 ? "" : url.slice(start + 1);
}
