import { RESOURCES, type Resource } from "../domain/resources.ts";
import type { Health } from "./answers.ts";
import { respond, respondNotFound, respondUnavailable } from "./respond.ts";
import type { Route, RouteHandler } from "./route.ts";

export interface RouteHandlers {
  list: (resource: Resource) => RouteHandler;
  row: (resource: Resource) => RouteHandler;
  intake: RouteHandler;
  platformWebhook: RouteHandler;
  openApi: RouteHandler;
  /** The pages and forms below /admin. */
  admin: readonly Route[];
  /** The pages and files below /docs. */
  docs: readonly Route[];
  /** Resolves to the reason if the program cannot take work now; otherwise to undefined. */
  notReady: () => Promise<string | undefined>;
}

/** Makes the table of every served path. Any other path gets 404. A method that its path does not have gets 405. */
export function createRoutes(handlers: RouteHandlers): Route[] {
  const { list, row, intake, platformWebhook, openApi, admin, docs, notReady } = handlers;
  const ready = async () => {
    const reason = await notReady();
    return reason === undefined ? health() : respondUnavailable(reason);
  };
  return [
    ...RESOURCES.flatMap((resource) => [
      { path: `/api/v1/${resource}`, methods: { GET: list(resource) } },
      { path: `/api/v1/${resource}/:row`, methods: { GET: row(resource) } },
    ]),
    // Below /api, a wrong method gets 405 even if the path is unknown (docs/api.md, Errors).
    { path: "/api", methods: { GET: respondNotFound } },
    { path: "/api/*", methods: { GET: respondNotFound } },
    { path: "/intake", methods: { POST: intake } },
    { path: "/platform/webhooks", methods: { POST: platformWebhook } },
    { path: "/openapi.json", methods: { GET: openApi, HEAD: openApi } },
    ...admin,
    ...docs,
    { path: "/healthz", methods: { GET: health, HEAD: health } },
    { path: "/readyz", methods: { GET: ready, HEAD: ready } },
  ];
}

function health(): Response {
  return respond(200, JSON.stringify({ status: "ok" } satisfies Health), { "Cache-Control": "no-store" });
}
