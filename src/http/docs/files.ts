import airbyte from "../../docs/airbyte.yaml" with { type: "text" };
import { GUIDES, isGuide } from "../../docs/guides.ts";
import { type Awaitable, andThen } from "../../lib/waits.ts";
import { createDocument, type Document, respondDocument } from "../documents.ts";
import type { Route, RouteHandler } from "../route.ts";
import { clientPackage } from "./client-package.ts";
import { PAGES, SITE } from "./site.ts";

const MARKDOWN = "text/markdown; charset=utf-8";
/** Content type of text files: browsers show plain text, but download other types. */
const TEXT = "text/plain; charset=utf-8";
/** Complete programs in the guides (docs/api.md, "Ready for your tools"). The first line of each is its name. */
const PROGRAMS = ["copy.mts", "puller.py", "receiver.mts", "receiver.py"];

/**
 * Serves files that need no key: an Airbyte source, the client's npm package, the guides' programs, and pages in
 * Markdown.
 */
export function docsFileRoutes(): Route[] {
  const client = clientPackage();
  return [
    ...(client === undefined ? [] : [file("/docs/sds-client.tgz", "application/gzip", () => client.bytes())]),
    file("/docs/airbyte.yaml", "application/yaml; charset=utf-8", () => airbyte),
    ...PROGRAMS.map((name) => file(`/docs/${name}`, TEXT, () => programNamed(name))),
    ...PAGES.map(({ path, text }) => file(`${path}.md`, MARKDOWN, text)),
    file("/docs/llms.txt", TEXT, listOfPages),
  ];
}

/** Makes the route of a file. @param content called once */
function file(path: string, type: string, content: () => Awaitable<string | Uint8Array<ArrayBuffer>>): Route {
  let document: Awaitable<Document> | undefined;
  const handler: RouteHandler = (request) => {
    document ??= andThen(content(), createDocument);
    // Revalidated each time, because an upgrade of the program may change the file.
    const headers = { "Content-Type": type, "Cache-Control": "no-cache" };
    return andThen(document, (made) => respondDocument(request, made, headers));
  };
  return { path, methods: { GET: handler, HEAD: handler } };
}

/** Finds a program in the guides by its first line, a comment with the program's name. */
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
    const lines = pages.map((page) => `- [${page.name}](${page.path}.md): ${page.summary}\n`);
    return `## ${name}\n\n${lines.join("")}`;
  });
  return ["# Subscription Data Service\n", "> The documentation. Each page is Markdown.\n", ...groups].join("\n");
}
