/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { render } from "preact-render-to-string";
import type { Section } from "../../docs/outline.ts";
import { createDocument, type Document, versionedAddress } from "../documents.ts";
import base from "../look/base.css" with { type: "text" };
import icon from "../look/icon.svg" with { type: "text" };
import { Mark } from "../look/mark.tsx";
import style from "./docs.css" with { type: "text" };
import script from "./docs.js" with { type: "text" };
import { type Entry, PAGES, SITE } from "./site.ts";

/** A file that every page loads. */
export interface PageFile {
  path: string;
  type: string;
  document: () => Document;
}

function pageFile(path: string, type: string, content: string): PageFile {
  let document: Document | undefined;
  return {
    path,
    type,
    document() {
      document ??= createDocument(content);
      return document;
    },
  };
}

const STYLE = pageFile("/docs/docs.css", "text/css; charset=utf-8", `${base}\n${style}`);
const SCRIPT = pageFile("/docs/docs.js", "text/javascript; charset=utf-8", script);
const ICON = pageFile("/docs/icon.svg", "image/svg+xml", icon);
export const PAGE_FILES: readonly PageFile[] = [STYLE, SCRIPT, ICON];

function addressOf({ path, document }: PageFile): string {
  return versionedAddress(path, document());
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

/** Renders a page as HTML. The page is complete without its script. */
export function renderPage({ title, topic, sections = [], query = "", content }: DocsPage): string {
  const inner = sections.filter(({ level }) => level === 2 || level === 3);
  const page = (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} · sds`}</title>
        <link rel="icon" href={addressOf(ICON)} />
        <link rel="stylesheet" href={addressOf(STYLE)} />
        <script src={addressOf(SCRIPT)} />
      </head>
      <body>
        <a class="skip" href="#main">
          Skip to the content
        </a>
        <header>
          <a class="home" href="/docs">
            <Mark /> sds documentation
          </a>
          <search>
            <form action="/docs/search">
              <input
                type="search"
                name="q"
                aria-label="Search the documentation"
                placeholder="Search"
                aria-keyshortcuts="/"
                value={query}
              />
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

/** A folded list above the content. Only narrow screens show this list. */
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
