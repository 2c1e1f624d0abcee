/** @jsxImportSource preact */
import { outline } from "../../docs/outline.ts";
import { renderPage } from "./layout.tsx";
import { renderMarkdown } from "./markdown.tsx";
import { search, wordsOf } from "./search.ts";
import { type Entry, linkTo, pictureAt, SITE, titleOf } from "./site.ts";

export async function renderTopic({ topic, name, text }: Entry): Promise<string> {
  const { highlight } = await import("./highlighter.tsx");
  const markdown = text();
  const content = renderMarkdown(markdown, { linkTo, pictureAt, titleOf, highlight });
  return renderPage({ title: name, topic, sections: outline(markdown), content });
}

/** Renders the home page: the list of all pages. */
export function renderHome(): string {
  const content = (
    <>
      <h1>Documentation</h1>
      <p>
        Read a shop's subscriptions, customers and orders as JSON, and get signed webhooks when they change. Begin with
        the <a href="/docs/quick-start">quick start</a>.
      </p>
      {SITE.map(({ name, entries }) => (
        <>
          <h2>{name}</h2>
          <ul>
            {entries.map(({ name: title, summary, path }) => (
              <li>
                <a href={path}>{title}</a>: {summary}
              </li>
            ))}
          </ul>
        </>
      ))}
      <p>
        For your tools: <a href="/openapi.json">the OpenAPI document</a>, programs that keep a copy (
        <a href="/docs/copy.mjs">JavaScript</a>, <a href="/docs/puller.py">Python</a>) and receive webhooks (
        <a href="/docs/receiver.mjs">JavaScript</a>, <a href="/docs/receiver.py">Python</a>), and{" "}
        <a href="/docs/airbyte.yaml">a source for Airbyte</a>. <a href="/docs/llms.txt">A list</a> leads to each page in
        Markdown. In the terminal, <code>sds docs</code> has the same pages.
      </p>
    </>
  );
  return renderPage({ title: "Documentation", content });
}

/** Renders the page for an unknown address. @param isRoot whether the address has no path */
export function renderUnknown(isRoot: boolean): string {
  const title = isRoot ? "Subscription Data Service" : "There is no page here";
  const content = (
    <>
      <h1>{title}</h1>
      <p>
        {isRoot ? null : "The address may have a mistake. "}
        <a href="/docs">The documentation</a> describes the API, the webhooks and how to operate this service. A shop's
        settings open in Shopify's admin, or with a sign-in link of whoever runs this service.
      </p>
    </>
  );
  return renderPage({ title, content });
}

/** Renders the results of a search. @param query untrusted */
export function renderSearch(query: string): string {
  return renderPage({ title: "Search", query, content: <Results query={query} /> });
}

function Results({ query }: { query: string }) {
  const words = wordsOf(query);
  const hits = search(query);
  return (
    <>
      <h1>Search</h1>
      {words.length === 0 ? (
        <p>Type some words into the field at the top.</p>
      ) : hits.length === 0 ? (
        <p>No section has all words of “{words.join(" ")}”. Try fewer words.</p>
      ) : (
        <ol class="hits">
          {hits.map(({ page, title, path, excerpt }) => (
            <li>
              <a href={path}>{page === title ? page : `${page}: ${title}`}</a>
              <p>
                <Marked text={excerpt} words={words} />
              </p>
            </li>
          ))}
        </ol>
      )}
    </>
  );
}

function Marked({ text, words }: { text: string; words: readonly string[] }) {
  const any = new RegExp(`(${words.map((word) => RegExp.escape(word)).join("|")})`, "i");
  return <>{text.split(any).map((part, index) => (index % 2 === 1 ? <mark>{part}</mark> : part))}</>;
}
