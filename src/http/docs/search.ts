import { outline } from "../../docs/outline.ts";
import { type Entry, PAGES, TOPICS } from "./site.ts";

/** A section that contains all words of a search. */
export interface Hit {
  page: string;
  title: string;
  path: string;
  /** The text around the first word of the search. */
  excerpt: string;
}

interface Indexed extends Omit<Hit, "excerpt"> {
  text: string;
  lowerTitle: string;
  lowerText: string;
}

/** Maximum length of a query in characters. The rest is ignored. */
export const MAX_QUERY_LENGTH = 100;
const MAX_WORDS = 8;
/** Words of a question that do not help to find its answer. */
const STOP_WORDS = new Set(
  (
    "a an and are can do does for from how i if in is it my of on or the there to use " +
    "what when where which why with you"
  ).split(" "),
);
const MAX_HITS = 20;
const EXCERPT_LENGTH = 160;
const BEFORE_WORD = 40;

let index: readonly Indexed[] | undefined;

/** Returns the first words of a query, in lower case. Leaves out STOP_WORDS, unless the query has no other words. */
export function wordsOf(query: string): string[] {
  const words = query
    .toLowerCase()
    .split(/[\s?]+/)
    .filter(Boolean);
  const telling = words.filter((word) => !STOP_WORDS.has(word));
  return (telling.length === 0 ? words : telling).slice(0, MAX_WORDS);
}

/** Finds the sections with all words of a query. A section with more of these words in its heading comes first. */
export function search(query: string): Hit[] {
  const words = wordsOf(query);
  if (words.length === 0) return [];
  index ??= PAGES.flatMap(indexPage);
  return index
    .filter(({ lowerTitle, lowerText }) => words.every((word) => lowerTitle.includes(word) || lowerText.includes(word)))
    .map((section) => ({ section, inTitle: words.filter((word) => section.lowerTitle.includes(word)).length }))
    .toSorted((one, other) => other.inTitle - one.inTitle)
    .slice(0, MAX_HITS)
    .map(({ section: { page, title, path, text, lowerText } }) => ({
      page,
      title,
      path,
      excerpt: excerptOf(text, lowerText, words),
    }));
}

function indexPage({ name: page, path: start, text: markdown }: Entry): Indexed[] {
  return outline(markdown()).map(({ level, title, anchor, text: source }) => {
    const text = plain(source.slice(source.indexOf("\n")));
    const path = level === 1 ? start : `${start}#${anchor}`;
    const named = TOPICS.find((topic) => topic.path === path)?.name ?? "";
    const lowerTitle = `${page} ${title} ${named}`.toLowerCase();
    return { page, title, path, text, lowerTitle, lowerText: text.toLowerCase() };
  });
}

/** Turns Markdown into plain text in one line. */
function plain(markdown: string): string {
  return markdown
    .replaceAll(/^(?:```.*|[|: -]+)$/gm, "")
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/[`*|\\]+/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}

function excerptOf(text: string, lowerText: string, words: readonly string[]): string {
  const places = words.map((word) => lowerText.indexOf(word)).filter((place) => place >= 0);
  const start = Math.max(0, Math.min(...places, lowerText.length) - BEFORE_WORD);
  const from = start === 0 || places.length === 0 ? 0 : text.indexOf(" ", start) + 1;
  const isWhole = from + EXCERPT_LENGTH >= text.length;
  const lastSpace = text.lastIndexOf(" ", from + EXCERPT_LENGTH);
  const cut = text.slice(from, isWhole || lastSpace <= from ? from + EXCERPT_LENGTH : lastSpace);
  return `${from > 0 ? "… " : ""}${cut}${isWhole ? "" : " …"}`;
}
