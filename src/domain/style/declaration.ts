import { type CssNode, type Declaration, ident, lexer, property } from "css-tree/dist/csstree.esm";
import { offsetOf } from "./selector.ts";
import { StyleRefusal } from "./tokens.ts";

/** Prefix of the names of keyframes, fonts and registered properties. These names are valid in the whole page. */
export const PREFIX = "sds-";

const LINKS_PAGE = "it gives elements names that the whole page uses";
/** The reason for each refused property. The names have no vendor prefix. */
const REFUSED_PROPERTIES = new Map([
  ["behavior", "it can load files"],
  ["binding", "it can load files"],
  ["anchor-name", LINKS_PAGE],
  ["scroll-initial-target", "it scrolls the page"],
  ["scroll-timeline", LINKS_PAGE],
  ["scroll-timeline-name", LINKS_PAGE],
  ["timeline-scope", LINKS_PAGE],
  ["timeline-trigger", LINKS_PAGE],
  ["timeline-trigger-name", LINKS_PAGE],
  ["view-timeline", LINKS_PAGE],
  ["view-timeline-name", LINKS_PAGE],
  ["view-transition-class", LINKS_PAGE],
  ["view-transition-group", LINKS_PAGE],
  ["view-transition-name", LINKS_PAGE],
]);

const POSITIONS = ["static", "relative", "absolute", "sticky", "initial", "unset"];
/**
 * Values of `display` that the widget may have. With another value the widget could lose its box, and `contain` has no
 * effect without a box.
 */
const WIDGET_DISPLAYS = "block flex flow-root grid inline-block inline-flex inline-grid list-item none table".split(
  " ",
);
const COUNTERS = new Set(["counter-increment", "counter-reset", "counter-set"]);

const FONT_DESCRIPTORS = new Set([
  ..."ascent-override descent-override font-display font-family font-feature-settings font-stretch font-style".split(
    " ",
  ),
  ..."font-variation-settings font-weight line-gap-override size-adjust src unicode-range".split(" "),
]);
const PROPERTY_DESCRIPTORS = new Set(["inherits", "initial-value", "syntax"]);

/** The elements to which a declaration can apply. */
export interface DeclarationTarget {
  /**
   * Whether the declaration can apply to the widget itself. Always true in keyframes, because the widget can use them.
   */
  mayBeWidget: boolean;
  isKeyframe: boolean;
}

/**
 * Checks a declaration of a rule or a keyframe. `readTokens` has checked the functions and addresses of its value.
 *
 * @throws StyleRefusal
 */
export function checkDeclaration(declaration: Declaration, target: DeclarationTarget): void {
  const at = offsetOf(declaration, 0);
  checkImportant(declaration, at);
  if (declaration.property.startsWith("--")) return;
  if (valueNodes(declaration).length === 0) throw new StyleRefusal(at, "This declaration has no value.");
  const name = checkPropertyName(declaration.property, at);
  checkPosition(declaration);
  if (COUNTERS.has(name)) checkCounters(declaration, at);
  if (!target.mayBeWidget) return;
  const where = target.isKeyframe ? "in @keyframes" : "on the widget itself";
  const keyword = keywordOf(declaration);
  if (name === "all") throw new StyleRefusal(at, `all is not allowed ${where}.`);
  if (name === "display" && !WIDGET_DISPLAYS.includes(keyword))
    throw new StyleRefusal(at, `Only these values of display are allowed ${where}: ${WIDGET_DISPLAYS.join(", ")}.`);
  if (name === "position" && keyword === "absolute")
    throw new StyleRefusal(at, `position: absolute is not allowed ${where}.`);
}

/** Checks `position` in rules and in conditions. Refuses variables, because they could hold `fixed`. */
export function checkPosition(declaration: Declaration): void {
  if (property(declaration.property).basename !== "position" || POSITIONS.includes(keywordOf(declaration))) return;
  throw new StyleRefusal(
    offsetOf(declaration, 0),
    `Only these values of position are allowed: ${POSITIONS.join(", ")}.`,
  );
}

/** Checks the declarations of `@font-face` or `@property`. */
export function checkDescriptors(
  rule: "font-face" | "property",
  declarations: readonly Declaration[],
  at: number,
): void {
  const allowed = rule === "property" ? PROPERTY_DESCRIPTORS : FONT_DESCRIPTORS;
  for (const declaration of declarations) {
    const start = offsetOf(declaration, at);
    checkImportant(declaration, start);
    const name = declaration.property.toLowerCase();
    if (!allowed.has(name)) throw new StyleRefusal(start, `${declaration.property} is not allowed in @${rule}.`);
    if (name !== "font-family") continue;
    const [first, ...rest] = valueNodes(declaration);
    const isOneName = rest.every(({ type }) => type === "Identifier" && first?.type === type);
    const family =
      first?.type === "String" ? first.value : first?.type === "Identifier" ? ident.decode(first.name) : "";
    if (!isOneName || !family.startsWith(PREFIX))
      throw new StyleRefusal(start, `The name of a font must begin with ${PREFIX}, such as ${PREFIX}brand.`);
  }
  const hasName = declarations.some(({ property: name }) => name.toLowerCase() === "font-family");
  if (rule === "font-face" && !hasName) throw new StyleRefusal(at, "@font-face needs a font-family.");
}

export function valueNodes({ value }: Declaration): CssNode[] {
  return value.type === "Raw" ? [] : [...value.children];
}

function checkImportant({ important }: Declaration, at: number): void {
  if (typeof important === "string" && important.toLowerCase() !== "important")
    throw new StyleRefusal(at, "Only !important may follow a value.");
}

/** Refuses unknown and forbidden properties. @returns the name in lower case without its vendor prefix */
function checkPropertyName(written: string, at: number): string {
  if (written.includes("\\")) throw new StyleRefusal(at, "Write the names of properties without escapes.");
  const { basename, vendor, name, hack } = property(written);
  const reason = REFUSED_PROPERTIES.get(basename);
  if (reason !== undefined) throw new StyleRefusal(at, `The property ${name} is not allowed: ${reason}.`);
  if (hack !== "" || !["", "-webkit-", "-moz-"].includes(vendor) || lexer.getProperty(written) === null)
    throw new StyleRefusal(at, `The property ${written} is not known.`);
  return basename;
}

/** @returns the value in lower case if it is a single keyword; otherwise "" */
function keywordOf(declaration: Declaration): string {
  const [first, ...rest] = valueNodes(declaration);
  return first?.type === "Identifier" && rest.length === 0 ? first.name.toLowerCase() : "";
}

/** The page and the widget share counters with the same name. So the widget's names must begin with our prefix. */
function checkCounters(declaration: Declaration, at: number): void {
  for (const node of valueNodes(declaration)) {
    const isOwn = node.type === "Identifier" && (node.name.startsWith(PREFIX) || node.name.toLowerCase() === "none");
    if (!isOwn && node.type !== "Number")
      throw new StyleRefusal(at, `The names of counters must begin with ${PREFIX}, such as ${PREFIX}step.`);
  }
}
