import type { BunRequest, Server } from "bun";
import { Elysia } from "elysia";
import type { Log } from "../lib/log.ts";
import { type Awaitable, andThen } from "../lib/waits.ts";
import { createBodyDropper } from "./body.ts";
import type { Clients } from "./client-network.ts";
import { respondMethodNotAllowed, respondNotFound, respondToThrown } from "./respond.ts";
import { type Method, type Route, type RouteContext, urlPathOf } from "./routes.ts";

/** How long a connection may be idle before it is closed, in seconds. */
const IDLE_TIMEOUT_S = 30;

/** Responds to a request for a path that nothing serves. */
type Unknown = (request: Request) => Response;

/** The label of all requests whose path is not in the table. */
const OTHER_ROUTE = "other";

/** A request with its answer, for metrics and the log. */
export interface AnsweredRequest {
  /** A label of the table of routes, or `OTHER_ROUTE`. */
  route: string;
  method: string;
  response: Response;
  /** Milliseconds until the answer was made. The body of the answer may still be on its way. */
  tookMs: number;
  context: RouteContext;
  /** The client's address; empty if `needsAddress` is not set, or if this process makes the request itself. */
  address: () => string;
}

interface HttpOptions {
  unknown?: Unknown;
  /** Each function is called after each answer. */
  observers?: readonly ((answered: AnsweredRequest) => void)[];
  /** Whether an observer reads the client's address. Asking Bun for the address takes some microseconds. */
  needsAddress?: boolean;
}

/** The parts of a path at the placeholders of its route, decoded. */
type Parameters = Record<string, string>;

/**
 * Makes an Elysia app from the table of routes. For a request on a socket, Bun's router calls `serve`. For a request to
 * `handle`, which has no socket, Elysia's router calls `serve`. Only Bun's router sees the path as it was sent. In
 * `request.url`, `/api/v2/../v1/orders` and `/api\v1\orders` are `/api/v1/orders`.
 */
export function createHttpApp(
  table: readonly Route[],
  clients: Clients,
  log: Log,
  { unknown = () => respondNotFound(), observers = [], needsAddress = false }: HttpOptions = {},
) {
  const respondThrown = (thrown: unknown) => respondToThrown(thrown, log);
  const afterBody = createBodyDropper();

  /**
   * Answers a request. Returns a plain response if the handler returns a plain response (lib/waits.ts).
   * @param matched undefined for unknown paths
   */
  function serve(
    matched: Route | undefined,
    request: Request,
    parameters: Parameters,
    server?: Server<unknown>,
  ): Awaitable<Response> {
    const found = routeWithId(table, matched, request, parameters);
    const context = contextOf(request, found === matched ? parameters : {}, clients, server);
    const respond = () => answer(found, request, context);
    if (observers.length === 0) return andThen(respond(), (response) => afterBody(request, response));
    const facts = { route: labelOf(found), method: request.method, context };
    const address = needsAddress ? addressOf(request, clients, server) : () => "";
    const observing = observed(observers, { ...facts, address }, respond);
    return andThen(observing, (response) => afterBody(request, response));
  }

  function answer(route: Route | undefined, request: Request, context: RouteContext): Awaitable<Response> {
    if (route === undefined) return unknown(request);
    const handler = route.methods[request.method as Method];
    if (handler === undefined) return respondMethodNotAllowed(Object.keys(route.methods));
    try {
      const response = handler(request, context);
      return response instanceof Promise ? response.catch(respondThrown) : response;
    } catch (thrown) {
      return respondThrown(thrown);
    }
  }

  const bunHandler = (route: Route) => (request: BunRequest, server: Server<unknown>) =>
    serve(route, request, request.params, server);
  const bunRoutes = Object.fromEntries(table.map((route) => [route.path, bunHandler(route)]));
  const bunUnknown = (request: Request, server: Server<unknown>) => serve(undefined, request, {}, server);
  const app = new Elysia({
    strictPath: true,
    // By default, Elysia finds the wrong path if the host is short, as in http://sds/.
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
      routes: { ...bunRoutes, "/*": bunUnknown },
    },
  });
  for (const method of ["ALL", "HEAD"]) {
    // Elysia gives no `params` for a path without placeholders. With `parse: "none"`, Elysia does not read bodies.
    for (const route of table)
      app.route(method, route.path, ({ request, params }) => serve(route, request, params ?? {}), { parse: "none" });
    app.route(method, "/*", ({ request }) => serve(undefined, request, {}), { parse: "none" });
  }
  return app;
}

/** Returns the name of a route for metrics and the log. @param route undefined for unknown paths */
export function labelOf(route: Route | undefined): string {
  return route === undefined ? OTHER_ROUTE : (route.label ?? route.path);
}

/** Makes the answer, and then calls the observers. */
function observed(
  observers: readonly ((answered: AnsweredRequest) => void)[],
  facts: Omit<AnsweredRequest, "response" | "tookMs">,
  answer: () => Awaitable<Response>,
): Awaitable<Response> {
  const beganMs = performance.now();
  return andThen(answer(), (response) => {
    const answered = { ...facts, response, tookMs: performance.now() - beganMs };
    for (const observe of observers) observe(answered);
    return response;
  });
}

/** Finds the route that answers. For a malformed id, it is the wildcard route with the same prefix. */
function routeWithId(
  table: readonly Route[],
  route: Route | undefined,
  request: Request,
  { id }: Parameters,
): Route | undefined {
  if (route === undefined || id === undefined || isPlainId(id, request)) return route;
  return table.find(({ path }) => path.endsWith("/*") && route.path.startsWith(path.slice(0, -1)));
}

/** Whether an id in a path is plain. A path with percent-encoded letters is another path, and gets 404. */
function isPlainId(id: string, { url }: Request): boolean {
  return /^\w+$/.test(id) && !urlPathOf(url).includes("%");
}

/** Returns the name of a row from a path. A gid with unencoded slashes arrives as several parts, which are joined. */
function rowOf({ row = "", vendor, object, number }: Parameters): string {
  return vendor === undefined ? row : `${row}//${vendor}/${object}/${number}`;
}

/** Asks Bun for the peer's address now, because the connection may be closed when the answer is ready. */
function addressOf(request: Request, clients: Clients, server: Server<unknown> | undefined): () => string {
  const peer = server?.requestIP(request)?.address;
  return () => clients.addressOf(request, peer);
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
