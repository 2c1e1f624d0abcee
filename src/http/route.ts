import type { Awaitable } from "../lib/awaitable.ts";

/** What a handler gets beside the request. */
export interface RouteContext {
  /** The part of the path at `:id`; empty in a path without it. */
  id: string;
  /** The network by which the client is counted, also behind proxies that are trusted. */
  client: () => string;
  /** Whether the client's connection is https, also behind such proxies. */
  isSecure: () => boolean;
  /**
   * Keeps the connection open for an answer that takes longer than a silent connection may last, until it is disposed:
   * before the answer is sent. undefined for a request that this process makes itself.
   */
  keepOpen: () => Disposable | undefined;
}

export type RouteHandler = (request: Request, context: RouteContext) => Awaitable<Response>;

/** The methods that a route can take. */
export type Method = "GET" | "HEAD" | "POST";

/** One row of the table of routes: a path and what answers there. */
export interface Route {
  /** Exact, byte for byte, but for the placeholders in PLACEHOLDERS and a final `*`, which stands for anything. */
  path: string;
  /** Every other method is 405 here, with these in `Allow`. */
  methods: Partial<Record<Method, RouteHandler>>;
}

/** What placeholders stand for, in the path of a URL and decoded. */
const PLACEHOLDERS = {
  id: { encoded: "\\w+", decoded: /^\w+$/ },
  /** An internal id or a gid. */
  row: { encoded: "(?:[\\w:]|%[0-9A-Fa-f]{2})+", decoded: /^[\w:/]+$/ },
};

/** Whether decoded parts of a path are what their placeholders stand for. */
export function areParameters(parameters: Record<string, string>): boolean {
  return Object.entries(parameters).every(
    ([name, value]) => PLACEHOLDERS[name as keyof typeof PLACEHOLDERS]?.decoded.test(value) ?? false,
  );
}

/** Whether the path has neither a placeholder nor `*`. */
export function isFixed({ path }: Route): boolean {
  return !/[:*]/.test(path);
}

/** @returns a function that finds the row of a path: one without placeholders first, then in the order of the table */
export function createRouteFinder(table: readonly Route[]): (path: string) => Route | undefined {
  const fixed = new Map(table.filter(isFixed).map((route) => [route.path, route]));
  const patterns = table.filter((route) => !isFixed(route)).map((route) => ({ route, form: formOf(route) }));
  return (path) => fixed.get(path) ?? patterns.find(({ form }) => form.test(path))?.route;
}

function formOf({ path }: Route): RegExp {
  const { id, row } = PLACEHOLDERS;
  return new RegExp(`^${path.replace(":id", id.encoded).replace(":row", row.encoded).replace("*", ".*")}$`);
}

/** Path and query of a request's URL. Without a usable Host header, Bun gives only these as the URL. */
export function targetOf(url: string): string {
  return url.slice(targetStart(url));
}

/** The path of a request's URL. */
export function pathOf(url: string): string {
  const start = targetStart(url);
  const end = url.indexOf("?", start);
  return url.slice(start, end === -1 ? undefined : end);
}

function targetStart(url: string): number {
  return url.startsWith("/") ? 0 : url.indexOf("/", url.indexOf("://") + 3);
}

/** What follows the `?` of a request's URL; empty without one. */
export function queryOf(url: string): string {
  const start = url.indexOf("?");
  return start === -1 ? "" : url.slice(start + 1);
}
