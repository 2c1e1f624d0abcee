import { queryOf, type Route, type RouteHandler } from "../route.ts";
import { STYLE, STYLE_PATH } from "./assets.ts";
import { createDocument, type Document, respondDocument } from "./documents.ts";
import { renderHome, renderSearch, renderTopic } from "./pages.tsx";
import { MAX_QUERY_LENGTH } from "./search.ts";
import { PAGES } from "./site.ts";

/** Allows nothing but our own style, and searches. Pico's style has pictures as `data:`. */
const POLICY =
  "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; " +
  "frame-ancestors 'none'";

const PAGE_HEADERS = {
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy": POLICY,
  // The program may be replaced at any time. An ETag makes asking again cheap.
  "Cache-Control": "no-cache",
  "Referrer-Policy": "no-referrer",
};
const STYLE_TYPE = "text/css; charset=utf-8";
const FOR_EVER = "public, max-age=31536000, immutable";

/** The documentation. It needs no key. A page is rendered when somebody asks for it first, and kept. */
export function docsRoutes(): Route[] {
  const [stylePath = ""] = STYLE_PATH.split("?");
  return [
    kept("/docs", async () => createDocument(renderHome(), PAGE_HEADERS)),
    ...PAGES.map((page) => kept(page.path, async () => createDocument(await renderTopic(page), PAGE_HEADERS))),
    readOnly("/docs/search", (request) => {
      const query = new URLSearchParams(queryOf(request.url)).get("q") ?? "";
      return respondDocument(request, createDocument(renderSearch(query.slice(0, MAX_QUERY_LENGTH)), PAGE_HEADERS));
    }),
    readOnly(stylePath, (request) => {
      const isCurrent = request.url.endsWith(STYLE_PATH);
      const headers = { "Content-Type": STYLE_TYPE, "Cache-Control": isCurrent ? FOR_EVER : "no-cache" };
      return respondDocument(request, createDocument(STYLE, headers));
    }),
  ];
}

/** A path whose document is made once. */
function kept(path: string, make: () => Promise<Document>): Route {
  let made: Promise<Document> | undefined;
  return readOnly(path, async (request) => {
    made ??= make();
    return respondDocument(request, await made);
  });
}

function readOnly(path: string, handler: RouteHandler): Route {
  return { path, methods: { GET: handler, HEAD: handler } };
}
