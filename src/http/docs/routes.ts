import { createDocument, type Document, respondDocument, respondVersioned } from "../documents.ts";
import { queryOf, type Route, type RouteHandler } from "../route.ts";
import { STYLE_PATH, styleDocument } from "./assets.ts";
import { renderHome, renderSearch, renderTopic } from "./pages.tsx";
import { MAX_QUERY_LENGTH } from "./search.ts";
import { PAGES } from "./site.ts";

/** Allows only our own stylesheet and the search form. Pico's style has `data:` images. */
const POLICY =
  "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; " +
  "frame-ancestors 'none'";

const PAGE_HEADERS = {
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy": POLICY,
  // An upgrade of the program may change the page. An ETag makes revalidation cheap.
  "Cache-Control": "no-cache",
  "Referrer-Policy": "no-referrer",
};
const STYLE_TYPE = "text/css; charset=utf-8";

/** Serves the documentation, without a key. A page is rendered at its first request. */
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
