import { createDocument, type Document, respondDocument, respondVersioned } from "../documents.ts";
import { queryOf, type Route, type RouteHandler } from "../route.ts";
import { STYLE_PATH, styleDocument } from "./assets.ts";
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

/** The documentation. It needs no key. A page is rendered when somebody asks for it first, and kept. */
export function docsRoutes(): Route[] {
  return [
    page("/docs", async () => renderHome()),
    ...PAGES.map((entry) => page(entry.path, () => renderTopic(entry))),
    readOnly("/docs/search", (request) => {
      const query = new URLSearchParams(queryOf(request.url)).get("q") ?? "";
      const found = createDocument(renderSearch(query.slice(0, MAX_QUERY_LENGTH)));
      return respondDocument(request, found, PAGE_HEADERS);
    }),
    readOnly(STYLE_PATH, (request) => respondVersioned(request, styleDocument(), STYLE_TYPE)),
  ];
}

/** A page that is rendered once. */
function page(path: string, render: () => Promise<string>): Route {
  let rendered: Promise<Document> | undefined;
  return readOnly(path, async (request) => {
    rendered ??= render().then(createDocument);
    return respondDocument(request, await rendered, PAGE_HEADERS);
  });
}

function readOnly(path: string, handler: RouteHandler): Route {
  return { path, methods: { GET: handler, HEAD: handler } };
}
