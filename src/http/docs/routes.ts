import airbyte from "../../docs/airbyte.yaml" with { type: "text" };
import alertTests from "../../docs/alerts.test.yaml" with { type: "text" };
import alerts from "../../docs/alerts.yaml" with { type: "text" };
import dashboard from "../../docs/dashboard.json";
import { GUIDES, isGuide } from "../../docs/guides.ts";
import { PICTURES } from "../../docs/pictures.ts";
import { type Awaitable, andThen } from "../../lib/waits.ts";
import { createDocument, type Document, READABLE_ANYWHERE, respondDocument, respondVersioned } from "../documents.ts";
import { newRequestId, respondNotFound } from "../respond.ts";
import { queryOf, type Route, type RouteHandler, urlPathOf } from "../routes.ts";
import { PAGE_FILES } from "./layout.tsx";
import { renderHome, renderSearch, renderTopic, renderUnknown } from "./pages.tsx";
import { MAX_QUERY_LENGTH } from "./search.ts";
import { PAGES, SITE } from "./site.ts";

/** The Content-Security-Policy of all pages. It allows only our own files and the search form. */
const POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; " +
  "frame-ancestors 'none'";

/** Browsers check for changes, because an upgrade may change a page or file. The ETag makes this check cheap. */
const REVALIDATED = { ...READABLE_ANYWHERE, "Cache-Control": "no-cache" };
const PAGE_HEADERS = {
  ...REVALIDATED,
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy": POLICY,
  "Referrer-Policy": "no-referrer",
};
const YAML = "application/yaml; charset=utf-8";
const MARKDOWN = "text/markdown; charset=utf-8";
/** Content type of text files: browsers show plain text, but download other types. */
const TEXT = "text/plain; charset=utf-8";
/** Complete programs in the guides (docs/api.md, "Ready for your tools"). Each program begins with its name. */
const PROGRAMS = ["copy.mjs", "puller.py", "receiver.mjs", "receiver.py"];

type FileContent = string | Uint8Array<ArrayBuffer>;

/** Serves the documentation, without a key: HTML pages, and files for programs. */
export function docsRoutes(): Route[] {
  const client = clientPackage();
  return [
    page("/docs", renderHome),
    ...PAGES.map((entry) => page(entry.path, () => renderTopic(entry))),
    readOnly("/docs/search", (request) => {
      const query = new URLSearchParams(queryOf(request.url)).get("q") ?? "";
      const found = createDocument(renderSearch(query.slice(0, MAX_QUERY_LENGTH)));
      return respondDocument(request, found, PAGE_HEADERS);
    }),
    ...PAGE_FILES.map(({ path, document, type }) =>
      readOnly(path, (request) => respondVersioned(request, document(), type, READABLE_ANYWHERE)),
    ),
    ...(client === undefined ? [] : [file("/docs/sds-client.tgz", "application/gzip", () => client.bytes())]),
    file("/docs/airbyte.yaml", YAML, () => airbyte),
    file("/docs/alerts.yaml", YAML, () => alerts),
    file("/docs/alerts.test.yaml", YAML, () => alertTests),
    file("/docs/dashboard.json", "application/json", () => JSON.stringify(dashboard, null, 2)),
    ...PROGRAMS.map((name) => file(`/docs/${name}`, TEXT, () => programNamed(name))),
    ...PAGES.map(({ path, text }) => file(`${path}.md`, MARKDOWN, text)),
    ...Object.entries(PICTURES).map(([name, path]) =>
      file(`/docs/pictures/${name}`, "image/webp", () => Bun.file(path).bytes()),
    ),
    file("/docs/llms.txt", TEXT, listOfPages),
  ];
}

/** Responds with 404 to an unknown path: with a page to browsers, and with JSON to other clients. */
export function respondUnknown(request: Request): Response {
  const isBrowser = request.method === "GET" && request.headers.get("accept")?.includes("text/html") === true;
  if (!isBrowser) return respondNotFound();
  const headers = { ...PAGE_HEADERS, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff" };
  return new Response(renderUnknown(urlPathOf(request.url) === "/"), {
    status: 404,
    headers: { ...headers, "X-Request-Id": newRequestId() },
  });
}

function page(path: string, render: () => Awaitable<string>): Route {
  return cached(path, PAGE_HEADERS, render);
}

function file(path: string, type: string, content: () => Awaitable<FileContent>): Route {
  return cached(path, { ...REVALIDATED, "Content-Type": type }, content);
}

/** Makes a route that keeps its content in memory. @param content called at the first request */
function cached(path: string, headers: Record<string, string>, content: () => Awaitable<FileContent>): Route {
  let document: Awaitable<Document> | undefined;
  return readOnly(path, (request) => {
    document ??= andThen(content(), createDocument);
    return andThen(document, (made) => respondDocument(request, made, headers));
  });
}

/** Makes a route. All routes of the documentation share a label, so that the metrics stay few. */
function readOnly(path: string, handler: RouteHandler): Route {
  return { path, label: "/docs/*", methods: { GET: handler, HEAD: handler } };
}

/** Returns the npm package of src/client. Only the built executable contains this package. */
function clientPackage(): Blob | undefined {
  return Bun.embeddedFiles.find((each) => "name" in each && /^sds-client-.*\.tgz$/.test(String(each.name)));
}

/** Finds a program in the guides. The first line of a program is a comment with the program's name. */
function programNamed(name: string): string {
  const block = new RegExp(`^\`\`\`\\w+\\n((?://|#) ${RegExp.escape(name)}\\n[\\s\\S]*?)^\`\`\``, "m");
  const guides = GUIDES.flatMap(({ entries }) => entries.filter(isGuide));
  const [code] = guides.flatMap(({ text }) => block.exec(text)?.[1] ?? []);
  if (code === undefined) throw new Error(`no guide has ${name}`);
  return code;
}

/** Lists the Markdown pages in the form of llmstxt.org. */
function listOfPages(): string {
  const groups = SITE.map(({ name, entries }) => {
    const pages = entries.filter(({ isPage }) => isPage);
    const lines = pages.map(({ name: title, path, summary }) => `- [${title}](${path}.md): ${summary}\n`);
    return `## ${name}\n\n${lines.join("")}`;
  });
  return ["# Subscription Data Service\n", "> The documentation. Each page is Markdown.\n", ...groups].join("\n");
}
