/** @jsxImportSource preact */
import { type ComponentChildren, h } from "preact";
import { createAnchors } from "../../docs/outline.ts";

/** How the site renders a page. */
export interface Rendering {
  /** Returns the address of a link on this site; undefined for a forbidden link. */
  linkTo: (target: string) => string | undefined;
  /** Returns the addresses of a picture, one for each theme; undefined if there is no such picture. */
  pictureAt: (target: string) => { light: string; dark: string } | undefined;
  /** Returns the title of the linked page; undefined for other targets. */
  titleOf: (target: string) => string | undefined;
  highlight: (code: string, language: string | undefined) => ComponentChildren;
}

/** An element of `Bun.markdown.react()`. Preact cannot render it, so `convert` makes Preact's own element. */
interface ReactElement {
  type: unknown;
  props: { children?: unknown; href?: string; src?: string; alt?: string; language?: string; start?: number };
}

/** Elements that `convert` keeps, without attributes. */
const PLAIN = new Set("p blockquote hr ul li em strong code del br".split(" "));
const LANGUAGE_NAMES: Record<string, string> = {
  sh: "Shell",
  ts: "TypeScript",
  js: "JavaScript",
  python: "Python",
  ruby: "Ruby",
  php: "PHP",
  go: "Go",
  json: "JSON",
};

/** State that all elements of a page share during rendering. */
interface PageContext extends Rendering {
  anchorOf: (heading: string) => string;
  /** Returns the name of a table below a heading. Two tables below one heading get different names. */
  tableNameOf: (heading: string) => string;
  /** The heading before the element. */
  heading: string;
}

/** Renders Markdown. HTML is shown as text. If `convert` does not know an element, only its content is rendered. */
export function renderMarkdown(text: string, rendering: Rendering): ComponentChildren {
  const page = { ...rendering, anchorOf: createAnchors(), tableNameOf: createTableNames(), heading: "" };
  return convert(page, Bun.markdown.react(text, undefined, { noHtmlBlocks: true, noHtmlSpans: true }));
}

function convert(page: PageContext, node: unknown): ComponentChildren {
  if (Array.isArray(node)) return node.map((each) => convert(page, each));
  if (!isElement(node)) return typeof node === "string" || typeof node === "number" ? node : null;
  const { type, props } = node;
  if (typeof type !== "string") return convert(page, props.children);
  if (PLAIN.has(type)) return h(type, null, convert(page, props.children));
  switch (type) {
    case "h1":
    case "h2":
    case "h3":
    case "h4":
      page.heading = textOf(props.children);
      return h(type, { id: page.anchorOf(page.heading) }, convert(page, props.children));
    case "a":
      return link(page, props.href ?? "", convert(page, props.children));
    case "img":
      return picture(page, props.src ?? "", props.alt ?? "");
    case "ol":
      return <ol start={props.start}>{convert(page, props.children)}</ol>;
    case "table":
      return table(page, props.children);
    case "pre":
      return codeBlock(page, textOf(props.children), props.language);
    default:
      return convert(page, props.children);
  }
}

function link({ linkTo, titleOf }: PageContext, target: string, children: ComponentChildren): ComponentChildren {
  const href = linkTo(target);
  // Markdown pages link to each other by file name. The site shows the title of the linked page instead.
  const text = textOf(children) === target.replace(/#.*/, "") ? (titleOf(target) ?? children) : children;
  return href === undefined ? text : <a href={href}>{text}</a>;
}

/** Renders two images, for a light and a dark theme. docs.css shows one image, and browsers load only that image. */
function picture({ pictureAt }: PageContext, target: string, description: string): ComponentChildren {
  const addresses = pictureAt(target);
  if (addresses === undefined) return description;
  return Object.entries(addresses).map(([theme, src]) => (
    <img class={`in-${theme}`} src={src} alt={description} loading="lazy" width={1280} height={800} />
  ));
}

/**
 * Renders a table. If the table has more than two columns, docs.css stacks the cells of each row on a narrow screen.
 * Each cell then shows the name of its column. The roles tell screen readers that the stacked cells are still a table.
 */
function table(page: PageContext, children: unknown): ComponentChildren {
  const [head, ...body] = elements(children, "tr");
  const columns = elements(head, "th").map(textOf);
  const row = (cells: ComponentChildren) => h("tr", { role: "row" }, cells);
  const cell = ({ props }: ReactElement, index: number) =>
    h("td", { role: "cell", "data-column": index === 0 ? undefined : columns[index] }, convert(page, props.children));
  // An empty heading becomes a plain cell: a screen reader would announce a heading without text.
  const columnHeading = (each: ReactElement) =>
    textOf(each) === ""
      ? h("td", { role: "cell" })
      : h("th", { role: "columnheader", scope: "col" }, convert(page, each.props.children));
  const rows = body.map((each) => row(elements(each, "td").map(cell)));
  return (
    <section class="overflow-auto" aria-label={page.tableNameOf(page.heading)} tabIndex={0}>
      {h("table", { role: "table", class: columns.length > 2 ? "stacked" : undefined }, [
        h("thead", { role: "rowgroup" }, row(elements(head, "th").map(columnHeading))),
        h("tbody", { role: "rowgroup" }, rows),
      ])}
    </section>
  );
}

function codeBlock({ highlight }: PageContext, code: string, language: string | undefined): ComponentChildren {
  const name = language === undefined ? undefined : LANGUAGE_NAMES[language];
  const block = (
    <pre tabIndex={0}>
      <code>{highlight(code.replace(/\n$/, ""), language)}</code>
    </pre>
  );
  if (name === undefined) return block;
  return (
    <figure>
      <figcaption>{name}</figcaption>
      {block}
    </figure>
  );
}

function createTableNames(): (heading: string) => string {
  const tables = new Map<string, number>();
  return (heading) => {
    const number = (tables.get(heading) ?? 0) + 1;
    tables.set(heading, number);
    return number === 1 ? `Table: ${heading}` : `Table ${number}: ${heading}`;
  };
}

function isElement(node: unknown): node is ReactElement {
  return typeof node === "object" && node !== null && "type" in node && "props" in node;
}

/** Returns the outermost elements of a type below a node. */
function elements(node: unknown, type: string): ReactElement[] {
  if (Array.isArray(node)) return node.flatMap((each) => elements(each, type));
  if (!isElement(node)) return [];
  return node.type === type ? [node] : elements(node.props.children, type);
}

function textOf(node: unknown): string {
  if (Array.isArray(node)) return node.map(textOf).join("");
  if (isElement(node)) return textOf(node.props.children);
  return typeof node === "string" || typeof node === "number" ? String(node) : "";
}
