/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { render } from "preact-render-to-string";
import type { Section } from "../../docs/outline.ts";
import { createDocument, type Document, versionedAddress } from "../documents.ts";
import base from "../look/base.css" with { type: "text" };
import style from "./docs.css" with { type: "text" };
import { type Entry, PAGES, SITE } from "./site.ts";

export const STYLE_PATH = "/docs/docs.css";

let madeStyle: Document | undefined;

/** Returns the stylesheet of all pages. */
export function styleDocument(): Document {
  madeStyle ??= createDocument(`${base}\n${style}`);
  return madeStyle;
}

interface DocsPage {
  title: string;
  /** The topic to mark in the list of pages. */
  topic?: string;
  /** Headings for the list at the side of the page. */
  sections?: readonly Section[];
  query?: string;
  content: ComponentChildren;
}

/** Renders a page as HTML without scripts. */
export function renderPage({ title, topic, sections = [], query = "", content }: DocsPage): string {
  const inner = sections.filter(({ level }) => level === 2 || level === 3);
  const page = (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} · sds`}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href={versionedAddress(STYLE_PATH, styleDocument())} />
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        <header>
          <a class="home" href="/docs">
            <strong>sds</strong> documentation
          </a>
          <search>
            <form action="/docs/search">
              <input type="search" name="q" aria-label="Search the documentation" placeholder="Search" value={query} />
              <button type="submit">Search</button>
            </form>
          </search>
        </header>
        <div class="columns">
          <nav class="wide" aria-label="Pages">
            <PageList current={topic} />
          </nav>
          <main id="main" tabIndex={-1}>
            <Folded label="Pages" title="All pages">
              <PageList current={topic} />
            </Folded>
            {inner.length === 0 ? null : (
              <Folded label="On this page" title="On this page">
                <SectionList sections={inner} />
              </Folded>
            )}
            {content}
            <Neighbours topic={topic} />
          </main>
          {inner.length === 0 ? null : (
            <nav class="wide" aria-label="On this page">
              <p class="label">On this page</p>
              <SectionList sections={inner} />
            </nav>
          )}
        </div>
      </body>
    </html>
  );
  return `<!doctype html>${render(page)}`;
}

/** A folded list above the content, for narrow screens. */
function Folded({ label, title, children }: { label: string; title: string; children: ComponentChildren }) {
  return (
    <nav class="narrow" aria-label={label}>
      <details>
        <summary>{title}</summary>
        {children}
      </details>
    </nav>
  );
}

function PageList({ current }: { current: string | undefined }) {
  return (
    <>
      {SITE.map(({ name, entries }) => (
        <>
          <p class="label">{name}</p>
          <ul>
            {entries.map(({ topic, name: title, path }) => (
              <li>
                <a href={path} {...(topic === current && { "aria-current": "page" as const })}>
                  {title}
                </a>
              </li>
            ))}
          </ul>
        </>
      ))}
    </>
  );
}

function SectionList({ sections }: { sections: readonly Section[] }) {
  return (
    <ul>
      {sections.map(({ level, title, anchor }) => (
        <li class={level === 3 ? "inner" : undefined}>
          <a href={`#${anchor}`}>{title}</a>
        </li>
      ))}
    </ul>
  );
}

/** Renders links to the previous and the next page. */
function Neighbours({ topic }: { topic: string | undefined }) {
  const at = PAGES.findIndex((page) => page.topic === topic);
  if (at === -1) return null;
  const neighbour = (page: Entry | undefined, label: string) =>
    page === undefined ? null : (
      <p>
        {label}: <a href={page.path}>{page.name}</a>
      </p>
    );
  return (
    <footer>
      {neighbour(PAGES[at - 1], "Before")}
      {neighbour(PAGES[at + 1], "Next")}
    </footer>
  );
}
