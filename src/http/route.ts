import type { Awaitable } from "../lib/waits.ts";

/** Facts about a request for its handler. */
export interface RouteContext {
  /** The part of the path at `:id` or `:row`, decoded; empty in a path without them. */
  id: string;
  /** Returns the network by which the client is counted, also behind trusted proxies. */
  client: () => string;
  /** Whether the client's connection is https, also behind trusted proxies. */
  isSecure: () => boolean;
}

export type RouteHandler = (request: Request, context: RouteContext) => Awaitable<Response>;

/** The methods that a route can take. */
export type Method = "GET" | "HEAD" | "POST";

/** One row of the table of routes: a path and its handlers. */
export interface Route {
  /**
   * Exact, byte for byte, except placeholders and a final `*`, which stands for anything. `:id` stands for letters,
   * digits and `_`. `:row` stands for any part of a path; its handler must check that part.
   */
  path: string;
  /** A request with another method gets 405, with these methods in `Allow`. */
  methods: Partial<Record<Method, RouteHandler>>;
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
