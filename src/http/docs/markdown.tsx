/** @jsxImportSource preact */
import { type ComponentChildren, h } from "preact";
import { createAnchors } from "../../docs/outline.ts";

/** How a page is put into the site. */
export interface Rendering {
  /** Where a link of a page leads on this site; undefined for a link that must not be followed. */
  linkTo: (target: string) => string | undefined;
  /** The title of the page that a link leads to; undefined for a link to something else. */
  titleOf: (target: string) => string | undefined;
  highlight: (code: string, language: string | undefined) => ComponentChildren;
}

/** What `Bun.markdown.react()` makes. Preact shows nothing in its place, so each one is made anew. */
interface ReactElement {
  type: unknown;
  props: { children?: unknown; href?: string; language?: string; start?: number };
}

/** Elements that are taken as they are, without attributes. */
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

/**
 * Renders Markdown. HTML in it is shown as text. An element that is not in the list above is left out, and its text
 * stays.
 */
export function renderMarkdown(text: string, { linkTo, titleOf, highlight }: Rendering): ComponentChildren {
  const anchorOf = createAnchors();
  /** Several tables can be below one heading, and no two may have one name. */
  const tableName = createNames();
  let heading = "";

  function convert(node: unknown): ComponentChildren {
    if (Array.isArray(node)) return node.map(convert);
    if (!isElement(node)) return typeof node === "string" || typeof node === "number" ? node : null;
    const { type, props } = node;
    if (typeof type !== "string") return convert(props.children);
    if (PLAIN.has(type)) return h(type, null, convert(props.children));
    switch (type) {
      case "h1":
      case "h2":
      case "h3":
      case "h4":
        heading = textOf(props.children);
        return h(type, { id: anchorOf(heading) }, convert(props.children));
      case "a":
        return link(props.href ?? "", convert(props.children));
      case "ol":
        return <ol start={props.start}>{convert(props.children)}</ol>;
      case "table":
        return table(props.children);
      case "pre":
        return codeBlock(textOf(props.children), props.language);
      default:
        return convert(props.children);
    }
  }

  function link(target: string, children: ComponentChildren): ComponentChildren {
    const href = linkTo(target);
    // A page links to another one by the name of its file, which is also its text then.
    const text = textOf(children) === target.replace(/#.*/, "") ? (titleOf(target) ?? children) : children;
    return href === undefined ? text : <a href={href}>{text}</a>;
  }

  /**
   * A table. A narrow screen shows the cells of a row below each other if it has more than two (docs.css), each after
   * the name of its column. The roles are for that case: what is no table for CSS is none for a screen reader either.
   */
  function table(children: unknown): ComponentChildren {
    const [head, ...body] = elements(children, "tr");
    const columns = elements(head, "th").map(textOf);
    const cell = (each: ReactElement, index: number) =>
      h("td", { role: "cell", "data-column": index === 0 ? undefined : columns[index] }, convert(each.props.children));
    const row = (cells: ComponentChildren) => h("tr", { role: "row" }, cells);
    return (
      <section class="overflow-auto" aria-label={tableName(heading)} tabIndex={0}>
        {h("table", { role: "table", class: columns.length > 2 ? "stacked" : undefined }, [
          h("thead", { role: "rowgroup" }, row(elements(head, "th").map(columnHeading))),
          h(
            "tbody",
            { role: "rowgroup" },
            body.map((each) => row(elements(each, "td").map(cell))),
          ),
        ])}
      </section>
    );
  }

  /** A heading without a text would be read out as nothing. */
  function columnHeading(each: ReactElement): ComponentChildren {
    if (textOf(each) === "") return h("td", { role: "cell" });
    return h("th", { role: "columnheader", scope: "col" }, convert(each.props.children));
  }

  function codeBlock(code: string, language: string | undefined): ComponentChildren {
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

  return convert(Bun.markdown.react(text, undefined, { noHtmlBlocks: true, noHtmlSpans: true }));
}

function createNames(): (heading: string) => string {
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

/** The outermost elements of a type. */
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
