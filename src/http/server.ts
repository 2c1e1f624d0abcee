import type { BunRequest, Server } from "bun";
import { Elysia } from "elysia";
import type { Log } from "../lib/log.ts";
import type { Awaitable } from "../lib/waits.ts";
import type { Clients } from "./client-network.ts";
import { respondMethodNotAllowed, respondNotFound, respondToThrown } from "./respond.ts";
import { type Method, type Route, type RouteContext, urlPathOf } from "./routes.ts";

/** A connection is closed after this many seconds without a byte. */
const IDLE_TIMEOUT_S = 30;

/** Responds to a request for a path that nothing serves. */
type Unknown = (request: Request) => Response;

/** The parts of a path at the placeholders of its route, decoded. */
type Parameters = Record<string, string>;

/**
 * Makes one Elysia app from the table of routes. Bun's router calls `serve` for a request on a socket. Elysia's router
 * calls it for a request to `handle`, which has no socket. Only Bun's router sees the path as it was sent. In
 * `request.url`, `/api/v2/../v1/orders` and `/api\v1\orders` are `/api/v1/orders`.
 */
export function createHttpApp(
  table: readonly Route[],
  clients: Clients,
  log: Log,
  unknown: Unknown = () => respondNotFound(),
) {
  const respondThrown = (thrown: unknown) => respondToThrown(thrown, log);

  /**
   * Returns an answer without a promise if the handler does (lib/waits.ts). A path with a malformed id is unknown: the
   * route of unknown paths above it answers.
   */
  function serve(
    { path, methods }: Route,
    request: Request,
    parameters: Parameters,
    server?: Server<unknown>,
  ): Awaitable<Response> {
    if (parameters["id"] !== undefined && !isPlainId(parameters["id"], request)) {
      const above = table.find((each) => each.path.endsWith("/*") && path.startsWith(each.path.slice(0, -1)));
      return above === undefined ? unknown(request) : serve(above, request, {}, server);
    }
    const handler = methods[request.method as Method];
    if (handler === undefined) return respondMethodNotAllowed(Object.keys(methods));
    try {
      const answer = handler(request, contextOf(request, parameters, clients, server));
      return answer instanceof Promise ? answer.catch(respondThrown) : answer;
    } catch (thrown) {
      return respondThrown(thrown);
    }
  }

  const bunHandler = (route: Route) => (request: BunRequest, server: Server<unknown>) =>
    serve(route, request, request.params, server);
  const bunRoutes = Object.fromEntries(table.map((route) => [route.path, bunHandler(route)]));
  const app = new Elysia({
    strictPath: true,
    // By default, Elysia looks for the path in the wrong place if the host is short, as in http://sds/.
    handler: { standardHostname: false },
    // Bun gets its routes from `serve.routes`, not from Elysia.
    systemRouter: false,
    serve: {
      // By default, two programs on one port would share its requests without an error.
      reusePort: false,
      development: false,
      // The handlers limit bodies and refuse large bodies in JSON. Bun's own refusal has no body.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      idleTimeout: IDLE_TIMEOUT_S,
      error: respondThrown,
      routes: { ...bunRoutes, "/*": unknown },
    },
  });
  for (const method of ["ALL", "HEAD"]) {
    // Elysia gives no `params` for a path without placeholders. With `parse: "none"`, Elysia does not read bodies.
    for (const route of table)
      app.route(method, route.path, ({ request, params }) => serve(route, request, params ?? {}), { parse: "none" });
    app.route(method, "/*", ({ request }) => unknown(request), { parse: "none" });
  }
  return app;
}

/** Whether an id in a path is plain. A path with encoded letters is another path, and gets 404. */
function isPlainId(id: string, { url }: Request): boolean {
  return /^\w+$/.test(id) && !urlPathOf(url).includes("%");
}

/** Returns the name of a row, which is the gid if the path has it with its slashes. */
function rowOf({ row = "", vendor, object, number }: Parameters): string {
  return vendor === undefined ? row : `${row}//${vendor}/${object}/${number}`;
}

/** @param server undefined for a request that this process makes itself */
function contextOf(
  request: Request,
  parameters: Parameters,
  clients: Clients,
  server: Server<unknown> | undefined,
): RouteContext {
  const peer = () => server?.requestIP(request)?.address;
  return {
    id: parameters["id"] ?? rowOf(parameters),
    client: () => clients.networkOf(request, peer()),
    isSecure: () => clients.isSecure(request, peer()),
  };
}
