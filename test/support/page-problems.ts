/** Elements without content and end tag. */
const VOID = new Set("area base br col embed hr img input link meta source track wbr".split(" "));
/** Elements that need a text, an image or an `aria-label`. */
const NEEDS_TEXT = new Set("a button caption dt h1 h2 h3 label legend summary th title".split(" "));
/** Attributes with the ids of other elements. */
const REFERENCES = ["for", "aria-labelledby", "aria-describedby", "aria-controls"];
const MAY_BE_EMPTY = new Set(["alt", "value", "content", "placeholder"]);

const TAG = /<(?<end>\/?)(?<name>[a-zA-Z][\w-]*|)(?<attributes>(?:\s+[^\s=>"]+(?:="[^"]*")?)*)\s*\/?>/g;

/**
 * Checks a page. Each element must be closed, and each element that needs a text must have one. No attribute may be
 * empty, and each id must exist once.
 * @returns what is wrong
 */
export function pageProblems(html: string): string[] {
  const problems: string[] = [];
  const open: { name: string; start: number; isLabelled: boolean }[] = [];
  const ids = new Set<string>();
  const referredIds: string[] = [];
  // The text of these elements is not HTML.
  const page = html.replaceAll(/(<(script|style|textarea)\b[^>]*>).*?(<\/\2>)/gs, "$1x$3");
  for (const { 0: tag, index, groups: { end, name = "", attributes: written = "" } = {} } of page.matchAll(TAG)) {
    if (end === "/") {
      const element = open.pop();
      if (element?.name !== name) problems.push(`</${name}> follows <${element?.name}>`);
      else if (NEEDS_TEXT.has(name) && !element.isLabelled && isEmpty(page.slice(element.start, index)))
        problems.push(`<${name}> is empty after ${page.slice(Math.max(0, element.start - 60), element.start)}`);
      continue;
    }
    if (name === "") problems.push(`${tag} has no name`);
    const attributes = new Map(
      [...written.matchAll(/([^\s="]+)(?:="([^"]*)")?/g)].map(([, key = "", value]) => [key, value]),
    );
    for (const [key, value] of attributes)
      if (value === "" && !MAY_BE_EMPTY.has(key)) problems.push(`${key} is empty in ${tag}`);
    const id = attributes.get("id");
    if (id !== undefined && ids.has(id)) problems.push(`two elements have the id ${id}`);
    if (id !== undefined) ids.add(id);
    referredIds.push(...REFERENCES.flatMap((key) => attributes.get(key)?.split(" ") ?? []));
    if (!VOID.has(name)) open.push({ name, start: index + tag.length, isLabelled: attributes.has("aria-label") });
  }
  for (const { name } of open) problems.push(`<${name}> is not closed`);
  for (const id of referredIds) if (!ids.has(id)) problems.push(`no element has the id ${id}`);
  return problems;
}

function isEmpty(html: string): boolean {
  return !/<(?:img|svg)\b/.test(html) && html.replaceAll(/<[^>]*>/g, "").trim() === "";
}
