import { type Declaration, generate, ident, OffsetToLocation, walk } from "css-tree/dist/csstree.esm";
import { MAX_STYLE_BYTES } from "../shop.ts";
import { checkDeclaration, checkDescriptors, checkPosition, PREFIX } from "./declaration.ts";
import { keyframesName, prefixKeyframesNames } from "./keyframes.ts";
import { type OuterRule, scopeSelectors, WIDGET } from "./selector.ts";
import { type AtRuleItem, type RuleItem, readStyle, type StyleItem } from "./syntax-tree.ts";
import { readTokens, StyleRefusal, TOO_LARGE } from "./tokens.ts";

/**
 * Maximum number of characters of a result. Scoping makes each selector longer, so 64 KiB of selectors could become a
 * megabyte.
 */
const MAX_SCOPED_CHARACTERS = 262_144;

/**
 * Confines the widget: it paints only inside its box, and its counters and quotes work only in its subtree. These
 * declarations stand in a layer, so a merchant's rules override them. Declarations with `!important` here cannot be
 * overridden.
 */
const BOX = "display:flow-root;contain:paint style!important;overflow-clip-margin:24px!important";
const CONTAINMENT = `@layer{@scope (.sds-widget){${WIDGET}{${BOX}}}}`;

/** These at-rules may contain rules. */
const CONDITIONS = new Set(["container", "media", "supports"]);

interface StylesheetRefusal {
  /** The first line and the first column have the number 1. A column is a UTF-16 code unit. */
  line: number;
  column: number;
  /** A sentence for the merchant. */
  reason: string;
}

export type ScopedStylesheet = { css: string } | { refused: StylesheetRefusal };

/**
 * Rewrites a merchant's CSS so that it styles only the widget (`.sds-widget`) and elements in it, and loads nothing.
 * CSS that could do anything else is refused as a whole: README.md has the rules. The result has at most 256 Ki
 * characters, no comments and no `</`, so that it may stand in a style element.
 *
 * Import this module only when a style is scoped: css-tree takes 50 ms to load.
 */
export function scopeStylesheet(source: string): ScopedStylesheet {
  const text = source.startsWith("\ufeff") ? source.slice(1) : source;
  try {
    if (isTooLarge(source))
      throw new StyleRefusal(0, `This style is too large: it may have at most ${MAX_STYLE_BYTES} bytes.`);
    const css = writeStyle(readStyle(text));
    checkScoped(css);
    return { css };
  } catch (error) {
    if (!(error instanceof StyleRefusal)) throw error;
    const lines = new OffsetToLocation(text);
    const { line, column } = lines.getLocation(Math.min(error.offset, text.length));
    return { refused: { line, column, reason: error.message } };
  }
}

/** Checks our own result again, so that a defect of ours cannot reach the visitors of shops. */
function checkScoped(css: string): void {
  try {
    readTokens(css, true);
  } catch (error) {
    throw new Error("a scoped style breaks the rules of styles", { cause: error });
  }
}

function isTooLarge(source: string): boolean {
  return source.length > MAX_STYLE_BYTES || new TextEncoder().encode(source).length > MAX_STYLE_BYTES;
}

function writeStyle(items: readonly StyleItem[]): string {
  prefixKeyframesNames(declarationsIn(items), definedKeyframes(items));
  const output = createOutput();
  // Definitions stand outside of @scope, because their names are global to the page.
  writeDefinitions(items, output);
  const definitions = output.text();
  const rules = createOutput(definitions.length);
  writeRules(items, rules, undefined);
  if (definitions === "" && rules.text() === "") return "";
  const css = `${CONTAINMENT}\n${definitions}@scope (.sds-widget){\n${rules.text()}}\n`;
  // Only strings can contain `</`, which would end a style element.
  return css.replaceAll("</", "<\\/");
}

interface StyleOutput {
  write(text: string, start: number): void;
  text(): string;
}

function createOutput(already = 0): StyleOutput {
  const parts: string[] = [];
  let length = already;
  return {
    write(text, start) {
      length += text.length;
      if (length > MAX_SCOPED_CHARACTERS) throw new StyleRefusal(start, TOO_LARGE);
      parts.push(text);
    },
    text: () => parts.join(""),
  };
}

function declarationsIn(items: readonly StyleItem[]): Declaration[] {
  return items.flatMap((item) => (item.kind === "declaration" ? [item.declaration] : declarationsIn(item.items)));
}

/** @returns the names as the merchant wrote them */
function definedKeyframes(items: readonly StyleItem[]): Set<string> {
  const writtenNames = new Map<string, string>();
  for (const item of atRulesIn(items).filter(({ name }) => name === "keyframes")) {
    const written = nameOf(item);
    const scoped = keyframesName(written, item.start);
    const other = writtenNames.get(scoped) ?? written;
    if (other !== written)
      throw new StyleRefusal(item.start, `Both ${written} and ${other} would get the name ${scoped}.`);
    writtenNames.set(scoped, written);
  }
  return new Set(writtenNames.values());
}

function atRulesIn(items: readonly StyleItem[]): AtRuleItem[] {
  return items.flatMap((item) =>
    item.kind === "declaration" ? [] : [...(item.kind === "at-rule" ? [item] : []), ...atRulesIn(item.items)],
  );
}

function nameOf({ name, prelude, start }: AtRuleItem): string {
  const [first, ...rest] = prelude.children;
  if (rest.length === 0 && first?.type === "Identifier") return ident.decode(first.name);
  if (rest.length === 0 && first?.type === "String" && name === "keyframes") return first.value;
  throw new StyleRefusal(start, `@${name} needs one name.`);
}

/** Writes keyframes, fonts and registered properties, each inside its conditions. */
function writeDefinitions(items: readonly StyleItem[], output: StyleOutput): void {
  for (const item of items) {
    if (item.kind !== "at-rule") continue;
    const { name, start } = item;
    if (name === "keyframes") writeKeyframes(item, output);
    else if (name === "font-face" || name === "property") writeDescriptors(item, name, output);
    else if (name === "container") {
      const definition = atRulesIn(item.items).find((each) => !CONDITIONS.has(each.name));
      if (definition !== undefined)
        throw new StyleRefusal(definition.start, `@${definition.name} can't stand in @container.`);
    } else {
      const inner = createOutput();
      writeDefinitions(item.items, inner);
      if (inner.text() !== "") output.write(`${conditionOf(item)}{\n${inner.text()}}\n`, start);
    }
  }
}

function writeKeyframes(item: AtRuleItem, output: StyleOutput): void {
  const { start } = item;
  output.write(`@keyframes ${ident.encode(keyframesName(nameOf(item), start))}{`, start);
  for (const frame of item.items) {
    if (frame.kind !== "rule") throw new StyleRefusal(frame.start, "Only keyframes may stand in @keyframes.");
    checkKeyframeSelectors(frame);
    output.write(`${generate(frame.selectors)}{`, frame.start);
    for (const each of frame.items) {
      if (each.kind !== "declaration") throw new StyleRefusal(each.start, "Only declarations may stand in a keyframe.");
      checkDeclaration(each.declaration, { mayBeWidget: true, isKeyframe: true });
      output.write(`${generate(each.declaration)};`, each.start);
    }
    output.write("}", frame.start);
  }
  output.write("}\n", start);
}

function checkKeyframeSelectors({ selectors, start }: RuleItem): void {
  for (const selector of selectors.children) {
    const [first, ...rest] = selector.type === "Selector" ? selector.children : [];
    const isName = first?.type === "TypeSelector" && ["from", "to"].includes(first.name.toLowerCase());
    if (rest.length > 0 || (!isName && first?.type !== "Percentage"))
      throw new StyleRefusal(start, "A keyframe is from, to or a percentage.");
  }
}

function writeDescriptors(item: AtRuleItem, name: "font-face" | "property", output: StyleOutput): void {
  const { start } = item;
  const declarations = item.items.map((each) => {
    if (each.kind !== "declaration") throw new StyleRefusal(each.start, `Only declarations may stand in @${name}.`);
    return each.declaration;
  });
  checkDescriptors(name, declarations, start);
  let heading = "@font-face";
  if (name === "property") {
    heading = `@property ${generate(item.prelude)}`;
    if (!nameOf(item).startsWith(`--${PREFIX}`))
      throw new StyleRefusal(start, `The name of a registered property must begin with --${PREFIX}.`);
  } else if (!item.prelude.children.isEmpty)
    throw new StyleRefusal(start, "Write the name of a font in font-family, not after @font-face.");
  output.write(`${heading}{${declarations.map((each) => `${generate(each)};`).join("")}}\n`, start);
}

/** @param outer the rule around these items; undefined outside of all rules */
function writeRules(items: readonly StyleItem[], output: StyleOutput, outer: OuterRule | undefined): void {
  for (const item of items) {
    const { start } = item;
    if (item.kind === "declaration") {
      checkDeclaration(item.declaration, { mayBeWidget: outer?.mayBeWidget ?? true, isKeyframe: false });
      output.write(`${generate(item.declaration)};`, start);
    } else if (item.kind === "rule") {
      const { text, mayBeWidget } = scopeSelectors(item.selectors, start, outer);
      output.write(`${text}{`, start);
      writeRules(item.items, output, { mayBeWidget });
      output.write("}\n", start);
    } else if (CONDITIONS.has(item.name)) {
      output.write(`${conditionOf(item)}{`, start);
      writeRules(item.items, output, outer);
      output.write("}\n", start);
    } else if (outer !== undefined) throw new StyleRefusal(start, `@${item.name} can't stand in a rule.`);
  }
}

function conditionOf({ name, prelude, start }: AtRuleItem): string {
  const condition = generate(prelude);
  if (condition.trim() === "") throw new StyleRefusal(start, `@${name} needs a condition.`);
  // The option `visit` of css-tree would miss declarations in conditions.
  walk(prelude, (node) => {
    if (node.type === "Declaration") checkPosition(node);
  });
  return `@${name} ${condition}`;
}
