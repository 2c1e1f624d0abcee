import type { BunRequest, Server } from "bun";
import { Elysia } from "elysia";
import type { Log } from "../lib/log.ts";
import type { Clients } from "./client-network.ts";
import { respondMethodNotAllowed, respondNotFound, respondToThrown } from "./respond.ts";
import {
  areParameters,
  createRouteFinder,
  isFixed,
  type Method,
  pathOf,
  type Route,
  type RouteContext,
} from "./route.ts";

/** A connection without any byte for so long is closed. Seconds. */
const IDLE_TIMEOUT_S = 30;

/**
 * The table of routes as one Elysia app. The guard and the error handler are registered before the routes, because a
 * hook only applies to routes that come after it. Both answer with a whole response, so every answer is JSON or a page
 * of the settings page.
 *
 * On a socket, Bun's own router comes first, because only it sees the path as it was sent. `request.url` is another
 * path: Bun resolves dots in it and turns backslashes into slashes, so `/api/v2/../v1/orders` and `/api\v1\orders`
 * become `/api/v1/orders`. A request goes on to Elysia only if its URL leads to the row that Bun found.
 *
 * An answer that is there at once is sent at once (lib/awaitable.ts). Elysia decides by the text of a hook or handler,
 * which `scripts/build` has made short, whether to wait for it: always if it has `async` or `await`, also inside a
 * name, or one of `return f(`, `=> f(` and `=>{f(`, with no space from f to the `(`. So the guard and the handlers
 * below begin with a declaration and end with a name.
 */
export function createHttpApp(table: readonly Route[], clients: Clients, log: Log) {
  const find = createRouteFinder(table);
  const respondThrown = (thrown: unknown) => respondToThrown(thrown, log);
  /** What Bun knows requests made by `withHost` by. */
  const originals = new WeakMap<Request, Request>();

  /**
   * Elysia needs a whole URL. Where the Host header is missing (HTTP/1.0) or is not a host name, Bun gives the target
   * only.
   */
  function withHost(request: Request): Request {
    if (!request.url.startsWith("/")) return request;
    const made = new Request(`http://localhost${request.url}`, request);
    originals.set(made, request);
    return made;
  }

  /** The handler that Bun's router calls for a row. */
  function bunHandler(route: Route): Bun.Serve.Handler<BunRequest, Server<unknown>, Response> {
    if (isFixed(route)) return (request): Response | Promise<Response> => app.fetch(withHost(request));
    // A path with dots, for instance, matches the pattern but is not served. It is 404, or 405 if a row such as
    // `/api/*` covers it and does not have the method.
    const wildcard = table.find(({ path }) => path.endsWith("*") && route.path.startsWith(path.slice(0, -1)));
    return (request): Response | Promise<Response> => {
      const whole = withHost(request);
      const isServed = find(pathOf(whole.url)) === route && areParameters(request.params);
      return isServed ? app.fetch(whole) : (refuse(wildcard, request) ?? respondNotFound());
    };
  }

  const app = new Elysia({
    strictPath: true,
    // By default Elysia expects a host of at least four characters, and looks for the path of http://sds/ in the wrong
    // place.
    handler: { standardHostname: false },
    // Bun gets its routes from `serve.routes`, not from Elysia.
    systemRouter: false,
    serve: {
      // By default two programs on one port share its requests without an error.
      reusePort: false,
      development: false,
      // The handlers limit bodies and answer in JSON. Bun's own refusal has no body.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      idleTimeout: IDLE_TIMEOUT_S,
      error: respondThrown,
      routes: {
        ...Object.fromEntries(table.map((route) => [route.path, bunHandler(route)])),
        "/*": () => respondNotFound(),
      },
    },
  })
    .onRequest(({ request }) => {
      const refusal = refuse(find(pathOf(request.url)), request);
      if (refusal !== undefined) return refusal;
    })
    .onError({ as: "global" }, ({ error }) => respondThrown(error));

  function contextOf(request: Request, params: unknown): RouteContext {
    const { id = "" } = (params ?? {}) as { id?: string };
    const { server } = app;
    const original = () => originals.get(request) ?? request;
    const peer = () => server?.requestIP(original())?.address;
    return {
      id,
      client: () => clients.networkOf(request, peer()),
      isSecure: () => clients.isSecure(request, peer()),
      keepOpen: () => (server === null ? undefined : keepOpen(server, original())),
    };
  }

  for (const { path, methods } of table) {
    for (const [method, handler] of Object.entries(methods)) {
      app.route(
        method,
        path,
        ({ request, params }) => {
          let answer = handler(request, contextOf(request, params));
          if (answer instanceof Promise) answer = answer.catch(respondThrown);
          return answer;
        },
        // Elysia also waits for a parser, even one that does nothing.
        method === "POST" ? { parse: "none" } : {},
      );
    }
  }
  return app;
}

/** Bun keeps the time for the connection, so the requests that follow on it would have none either. */
function keepOpen(server: Server<unknown>, request: Request): Disposable {
  server.timeout(request, 0);
  return { [Symbol.dispose]: () => server.timeout(request, IDLE_TIMEOUT_S) };
}

/** 404 for a path that is not in the table, 405 for a method that its row does not have. */
function refuse(route: Route | undefined, { method }: Request): Response | undefined {
  if (route === undefined) return respondNotFound();
  return route.methods[method as Method] === undefined
    ? respondMethodNotAllowed(Object.keys(route.methods))
    : undefined;
}
