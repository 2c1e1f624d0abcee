import type { Awaitable } from "../lib/waits.ts";

/** Facts about a request that its handler gets. */
export interface RouteContext {
  /** The part of the path at `:id` or `:row`, decoded; empty in a path without them. */
  id: string;
  /** The network by which the client is counted, also behind proxies that are trusted. */
  client: () => string;
  /** Whether the client's connection is https, also behind such proxies. */
  isSecure: () => boolean;
}

export type RouteHandler = (request: Request, context: RouteContext) => Awaitable<Response>;

/** The methods that a route can take. */
export type Method = "GET" | "HEAD" | "POST";

/** One row of the table of routes: a path and what answers there. */
export interface Route {
  /**
   * Exact, byte for byte, but for a placeholder and a final `*`, which stands for anything. `:id` stands for letters,
   * digits and `_`. `:row` stands for any part of a path, which its handler has to check.
   */
  path: string;
  /** Every other method is 405 here, with these in `Allow`. */
  methods: Partial<Record<Method, RouteHandler>>;
}

/** Path and query of a request's URL. Without a usable Host header, Bun gives only these as the URL. */
export function targetOf(url: string): string {
  return url.slice(targetStart(url));
}

/** The path of a request's URL. */
export function urlPathOf(url: string): string {
  const start = targetStart(url);
  const end = url.indexOf("?", start);
  return url.slice(start, end === -1 ? undefined : end);
}

function targetStart(url: string): number {
  return url.startsWith("/") ? 0 : url.indexOf("/", url.indexOf("://") + 3);
}

/** The query of a request's URL, without the `?`; empty if the URL has no query. */
export function queryOf(url: string): string {
  const start = url.indexOf("?");
  return start === -1 ? "" : url.slice(start + 1);
}
