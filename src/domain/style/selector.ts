import { type CssNode, generate, type Selector, type SelectorList } from "css-tree/dist/csstree.esm";
import { StyleRefusal } from "./tokens.ts";

/**
 * The selector of the widget. In `@scope`, browsers prepend `:scope` and a descendant combinator to each selector
 * without `:scope`. Such a selector would not match the widget itself, so this selector has `:scope`.
 */
export const WIDGET = ".sds-widget:scope";
const ANYTHING = `:is(${WIDGET},${WIDGET} *)`;

const PSEUDO_CLASSES = new Set(
  [
    "active any-link autofill checked default defined disabled empty enabled first-child first-of-type focus",
    "focus-visible focus-within fullscreen hover in-range indeterminate invalid last-child last-of-type link modal",
    "only-child only-of-type open optional out-of-range placeholder-shown popover-open read-only read-write required",
    "root scope target user-invalid user-valid valid visited -webkit-autofill",
  ].flatMap((names) => names.split(" ")),
);
const SELECTOR_FUNCTIONS = new Set(["has", "is", "not", "where"]);
const OTHER_FUNCTIONS = new Set("dir lang nth-child nth-last-child nth-last-of-type nth-of-type".split(" "));

/** Pseudo-elements written with one colon, as in CSS 2. */
const OLD_PSEUDO_ELEMENTS = new Set(["after", "before", "first-letter", "first-line"]);
/** The allowed pseudo-elements. `::view-transition` and `::backdrop` would cover the page, for example. */
const PSEUDO_ELEMENTS = new Set(
  [
    ...OLD_PSEUDO_ELEMENTS,
    ..."file-selector-button marker placeholder selection".split(" "),
    ..."details-marker inner-spin-button outer-spin-button scrollbar scrollbar-thumb scrollbar-track".split(" "),
    ..."search-cancel-button slider-runnable-track slider-thumb".split(" "),
  ].flatMap((name) => [name, `-webkit-${name}`]),
);
for (const name of ["-moz-focus-inner", "-moz-range-progress", "-moz-range-thumb", "-moz-range-track"])
  PSEUDO_ELEMENTS.add(name);

interface Compound {
  /**
   * The combinator before the compound; undefined for the first compound, unless a nested selector begins with a
   * combinator.
   */
  combinator: string | undefined;
  nodes: CssNode[];
}

/** What nested selectors must know about the rule around them. */
export interface OuterRule {
  /** Whether `&` may be the widget itself. */
  mayBeWidget: boolean;
}

export interface ScopedSelectors extends OuterRule {
  text: string;
}

/**
 * Writes selectors so that each matches only the widget and elements in it, even in a browser that ignores `@scope`.
 * Each selector begins with the widget or with `&`, and selects no sibling of the widget.
 * @param outer undefined for a rule that is not nested
 * @throws StyleRefusal
 */
export function scopeSelectors(list: SelectorList, start: number, outer: OuterRule | undefined): ScopedSelectors {
  if (list.children.isEmpty) throw new StyleRefusal(start, "A selector is expected.");
  const scoped = [...list.children].map((selector) => scopeSelector(selectorOf(selector, start), start, outer));
  return { text: scoped.map(({ text }) => text).join(","), mayBeWidget: scoped.some((each) => each.mayBeWidget) };
}

function scopeSelector(selector: Selector, start: number, outer: OuterRule | undefined): ScopedSelectors {
  const compounds = compoundsOf(selector, outer !== undefined);
  const [first, ...rest] = outer === undefined ? mergeWidgets(compounds) : compounds;
  if (first === undefined) throw new StyleRefusal(start, "A selector is expected.");
  const beginning = beginSelector(first, rest[0], outer, hasNesting(selector));
  let { text, mayBeWidget } = beginning;
  for (const { combinator = " ", nodes } of beginning.isWhole ? rest : [first, ...rest]) {
    if (mayBeWidget && (combinator === "+" || combinator === "~"))
      throw new StyleRefusal(offsetOf(nodes[0], start), "A style can't select elements beside the widget.");
    mayBeWidget = false;
    text += combinator + nodes.map((node) => generate(node)).join("");
  }
  const last = compounds.at(-1)?.nodes ?? [];
  return { text, mayBeWidget: mayBeWidget && !last.some(isPseudoElement) };
}

interface Beginning extends ScopedSelectors {
  /** Whether `text` contains the first compound. Otherwise the caller appends the compound. */
  isWhole: boolean;
}

function beginSelector(
  first: Compound,
  second: Compound | undefined,
  outer: OuterRule | undefined,
  isRelativeToOuter: boolean,
): Beginning {
  const { combinator, nodes } = first;
  const isNested = outer !== undefined;
  const mayBeOuter = outer?.mayBeWidget ?? true;
  if (isNested && (combinator !== undefined || !isRelativeToOuter))
    return { text: "&", mayBeWidget: mayBeOuter, isWhole: false };
  const write = (kept: readonly CssNode[]) => kept.map((node) => generate(node)).join("");
  if (isNested && nodes.some(({ type }) => type === "NestingSelector"))
    return { text: write(nodes), mayBeWidget: mayBeOuter, isWhole: true };
  const kept = nodes.filter((node) => !isWidget(node, isNested));
  if (kept.length < nodes.length) {
    const names = kept.filter(({ type }) => type === "TypeSelector");
    if (names.length > 1) throw new StyleRefusal(offsetOf(names[1], 0), "Write only one name of the widget here.");
    const others = kept.filter(({ type }) => type !== "TypeSelector");
    return { text: `${write(names)}${WIDGET}${write(others)}`, mayBeWidget: true, isWhole: true };
  }
  const [type, ...others] = nodes;
  // `* + a` must not select a sibling of the widget. So before a sibling combinator, `*` stands only for elements in
  // the widget.
  if (isUniversal(type) && second?.combinator !== "+" && second?.combinator !== "~")
    return { text: `${ANYTHING}${write(others)}`, mayBeWidget: true, isWhole: true };
  return { text: WIDGET, mayBeWidget: true, isWhole: false };
}

/** Makes `html body` one compound, because both names stand for the widget. */
function mergeWidgets([first, second, ...rest]: readonly Compound[]): Compound[] {
  if (first === undefined) return [];
  const isInside = second?.combinator === " " || second?.combinator === ">";
  const areWidgets = [first, second].every((compound) => compound?.nodes.some((node) => isWidget(node, false)));
  if (second === undefined || !isInside || !areWidgets)
    return [first, ...(second === undefined ? [] : [second]), ...rest];
  return mergeWidgets([{ combinator: undefined, nodes: [...first.nodes, ...second.nodes] }, ...rest]);
}

function isWidget(simple: CssNode, isNested: boolean): boolean {
  switch (simple.type) {
    case "TypeSelector":
      return ["html", "body"].includes(simple.name.toLowerCase());
    case "PseudoClassSelector":
      return simple.children === null && ["root", "host", "scope"].includes(simple.name.toLowerCase());
    case "ClassSelector":
      return simple.name === "sds-widget";
    case "NestingSelector":
      return !isNested;
    default:
      return false;
  }
}

function isUniversal(simple: CssNode | undefined): boolean {
  return simple?.type === "TypeSelector" && simple.name === "*";
}

function isPseudoElement(simple: CssNode): boolean {
  return (
    simple.type === "PseudoElementSelector" ||
    (simple.type === "PseudoClassSelector" && OLD_PSEUDO_ELEMENTS.has(simple.name.toLowerCase()))
  );
}

function compoundsOf(selector: Selector, mayBeginWithCombinator: boolean): Compound[] {
  const compounds: Compound[] = [];
  let next: Compound = { combinator: undefined, nodes: [] };
  const children = [...selector.children];
  for (const [index, node] of children.entries()) {
    const at = offsetOf(node, offsetOf(selector, 0));
    if (node.type === "Combinator") {
      if (![" ", ">", "+", "~"].includes(node.name)) throw new StyleRefusal(at, "This combinator is not allowed.");
      const isFirst = index === 0;
      if (index === children.length - 1 || (isFirst ? !mayBeginWithCombinator : next.nodes.length === 0))
        throw new StyleRefusal(at, "A combinator must stand between two selectors.");
      if (!isFirst) compounds.push(next);
      next = { combinator: node.name, nodes: [] };
    } else {
      checkSimpleSelector(node, at, next.nodes.length === 0, compounds.length === 0);
      next.nodes.push(node);
    }
  }
  return [...compounds, next];
}

function checkSimpleSelector(simple: CssNode, at: number, isFirstOfCompound: boolean, isFirstCompound: boolean): void {
  switch (simple.type) {
    case "TypeSelector":
      if (simple.name.includes("|")) throw new StyleRefusal(at, "Namespaces are not allowed.");
      if (!isFirstOfCompound) throw new StyleRefusal(at, "The name of an element must stand first.");
      return;
    case "AttributeSelector":
      if (simple.name.name.includes("|")) throw new StyleRefusal(at, "Namespaces are not allowed.");
      return;
    case "ClassSelector":
    case "IdSelector":
    case "NestingSelector":
      return;
    case "PseudoElementSelector":
      if (simple.children === null && PSEUDO_ELEMENTS.has(simple.name.toLowerCase())) return;
      throw new StyleRefusal(at, `The pseudo-element ::${simple.name} is not allowed.`);
    case "PseudoClassSelector":
      checkPseudoClass(simple.name, simple.children === null ? null : [...simple.children], at, isFirstCompound);
      return;
    default:
      throw new StyleRefusal(at, "This is not a selector.");
  }
}

function checkPseudoClass(written: string, children: CssNode[] | null, at: number, isFirstCompound: boolean): void {
  const name = written.toLowerCase();
  const isAllowed =
    children === null
      ? PSEUDO_CLASSES.has(name) || OLD_PSEUDO_ELEMENTS.has(name) || (name === "host" && isFirstCompound)
      : children.length > 0 && (SELECTOR_FUNCTIONS.has(name) || OTHER_FUNCTIONS.has(name));
  if (!isAllowed) throw new StyleRefusal(at, `The pseudo-class :${written} is not allowed here.`);
  for (const child of children ?? []) {
    if (child.type === "Raw") throw new StyleRefusal(at, `The pseudo-class :${written} is not valid.`);
    const list = child.type === "Nth" ? child.selector : child;
    if (list?.type !== "SelectorList") continue;
    for (const selector of list.children) compoundsOf(selectorOf(selector, at), name === "has");
  }
}

function hasNesting(tree: CssNode): boolean {
  if (tree.type === "NestingSelector") return true;
  if (tree.type === "Nth") return tree.selector !== null && hasNesting(tree.selector);
  if (tree.type !== "Selector" && tree.type !== "SelectorList" && tree.type !== "PseudoClassSelector") return false;
  return [...(tree.children ?? [])].some(hasNesting);
}

function selectorOf(tree: CssNode, start: number): Selector {
  if (tree.type !== "Selector") throw new StyleRefusal(offsetOf(tree, start), "A selector is expected.");
  return tree;
}

/** @param start the result if css-tree noted no offset. A combinator that css-tree makes from a space has no offset */
export function offsetOf(tree: CssNode | undefined, start: number): number {
  return tree?.loc?.start.offset ?? start;
}
