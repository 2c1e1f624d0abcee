/** Elements without content and end tag. */
const VOID_ELEMENTS = new Set("area base br col embed hr img input link meta source track wbr".split(" "));
/** Elements that need a text, an image with a text, or a label. */
const TEXT_ELEMENTS = new Set(
  "a button caption dt figcaption h1 h2 h3 h4 h5 h6 label legend li summary th title".split(" "),
);
/** Attributes with the ids of other elements. */
const REFERENCE_ATTRIBUTES = ["for", "aria-labelledby", "aria-describedby", "aria-controls"];
/** Attributes that may have no value. Preact renders an empty value as a name alone, as it renders `true`. */
const OPTIONAL_VALUES = new Set(
  (
    "alt autofocus checked content data-announce data-column defer disabled hidden multiple open placeholder readonly " +
    "required reversed sandbox selected value"
  ).split(" "),
);

const TAG = /<(\/?)([a-zA-Z][\w-]*|)((?:\s+[^\s=>"/]+(?:="[^"]*")?)*)\s*\/?>/g;

interface OpenElement {
  name: string;
  /** Where the content begins. */
  contentAt: number;
  isLabelled: boolean;
}

/**
 * Checks a page. Each element must be closed, and each of TEXT_ELEMENTS must have a text. No attribute may lack a value,
 * except for OPTIONAL_VALUES. No id may occur twice, and each id that is referred to must exist.
 * @returns what is wrong
 */
export function pageProblems(html: string): string[] {
  const problems: string[] = [];
  const openElements: OpenElement[] = [];
  const ids = new Set<string>();
  const references: string[] = [];
  // The text of these elements is not HTML.
  const page = html.replaceAll(/(<(script|style|textarea)\b(?:"[^"]*"|[^">])*>).*?(<\/\2>)/gs, "$1$3");
  for (const match of page.matchAll(TAG)) {
    const [tag, slash, name = "", attributesText = ""] = match;
    if (slash === "/") {
      const closed = openElements.pop();
      if (closed?.name !== name) problems.push(`</${name}> closes ${closed === undefined ? "nothing" : closed.name}`);
      else if (TEXT_ELEMENTS.has(name) && !closed.isLabelled && isEmpty(page.slice(closed.contentAt, match.index)))
        problems.push(`<${name}> has no text: ${page.slice(closed.contentAt - 60, match.index)}`);
      continue;
    }
    if (name === "") problems.push(`${tag} has no name`);
    const attributes = attributesIn(attributesText);
    for (const [key, value] of attributes)
      if (value === "" && !OPTIONAL_VALUES.has(key)) problems.push(`${key} has no value in ${tag}`);
    const id = attributes.get("id") ?? "";
    if (ids.has(id)) problems.push(`two elements have the id ${id}`);
    if (id !== "") ids.add(id);
    references.push(...referencesIn(attributes));
    const isLabelled = attributes.has("aria-label") || attributes.has("aria-labelledby");
    if (!VOID_ELEMENTS.has(name) && !tag.endsWith("/>"))
      openElements.push({ name, contentAt: match.index + tag.length, isLabelled });
  }
  for (const { name } of openElements) problems.push(`<${name}> is not closed`);
  for (const id of references) if (!ids.has(id)) problems.push(`no element has the id ${id}`);
  const unread = page.replaceAll(TAG, "").replace(/^<!doctype html>/i, "");
  if (unread.includes("<")) problems.push(`this is no tag: ${unread.slice(unread.indexOf("<")).slice(0, 60)}`);
  return problems;
}

function attributesIn(text: string): Map<string, string> {
  const pairs = text.matchAll(/([^\s="]+)(?:="([^"]*)")?/g);
  return new Map([...pairs].map(([, name = "", value = ""]) => [name, value]));
}

function referencesIn(attributes: ReadonlyMap<string, string>): string[] {
  const named = REFERENCE_ATTRIBUTES.flatMap((name) => attributes.get(name)?.split(" ") ?? []);
  const [, target] = /^#(.+)/.exec(attributes.get("href") ?? "") ?? [];
  return target === undefined ? named : [...named, target];
}

function isEmpty(html: string): boolean {
  return !/<img\b[^>]*\balt="[^"]/.test(html) && html.replaceAll(TAG, "").trim() === "";
}
