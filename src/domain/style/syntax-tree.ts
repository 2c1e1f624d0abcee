import {
  type AtrulePrelude,
  type CssNode,
  type Declaration,
  type Identifier,
  parse,
  type SelectorList,
  tokenTypes,
  walk,
} from "css-tree/dist/csstree.esm";
import { isBlank, readTokens, StyleRefusal, type StyleToken, TOO_LARGE } from "./tokens.ts";

/** Maximum number of rules and declarations in a style. css-tree takes about ten microseconds for each of them. */
const MAX_ITEMS = 5_000;

/** An item of a style or of a block. `start` is the offset of the item's first character in the source. */
export type StyleItem = DeclarationItem | RuleItem | AtRuleItem;

interface DeclarationItem {
  kind: "declaration";
  start: number;
  declaration: Declaration;
}

export interface RuleItem {
  kind: "rule";
  start: number;
  selectors: SelectorList;
  items: StyleItem[];
}

export interface AtRuleItem {
  kind: "at-rule";
  start: number;
  /** In lower case, without the @. */
  name: string;
  prelude: AtrulePrelude;
  items: StyleItem[];
}

/**
 * Reads a style into a tree. css-tree parses selectors, conditions and declarations. This file finds the blocks by
 * their tokens. css-tree would parse a nested rule without `&` as a declaration, and repair wrong blocks without an
 * error.
 * @throws StyleRefusal
 */
export function readStyle(source: string): StyleItem[] {
  const tokens = readTokens(source);
  return readItems({ source, tokens, itemCount: 0 }, 0, tokens.length, false);
}

interface TokenSource {
  source: string;
  tokens: StyleToken[];
  /** The number of items read so far. */
  itemCount: number;
}

/** @param end the index after the last token */
function readItems(from: TokenSource, begin: number, end: number, isInRule: boolean): StyleItem[] {
  const items: StyleItem[] = [];
  let index = begin;
  while (index < end) {
    const token = from.tokens[index];
    if (token === undefined) break;
    if (isBlank(token) || (isInRule && token.type === tokenTypes.Semicolon)) {
      index++;
      continue;
    }
    if (++from.itemCount > MAX_ITEMS) throw new StyleRefusal(token.start, TOO_LARGE);
    const isAtRule = token.type === tokenTypes.AtKeyword;
    const stop = findStop(from.tokens, index, end);
    const stopToken = from.tokens[stop];
    const hasBlock = stopToken?.type === tokenTypes.LeftCurlyBracket;
    if (isInRule && !isAtRule && isDeclaration(from, index, hasBlock)) {
      if (hasBlock) throw new StyleRefusal(token.start, "Braces are not allowed in a value.");
      items.push(readDeclaration(from, index, stop));
      index = stop + 1;
      continue;
    }
    if (!hasBlock) throw new StyleRefusal(token.start, "This is not a rule: a block in braces must follow.");
    const content = { begin: stop + 1, end: stopToken.closer };
    items.push(isAtRule ? readAtRule(from, index, stop, content, isInRule) : readRule(from, index, stop, content));
    index = content.end + 1;
  }
  return items;
}

/** @returns the index of the brace or semicolon that ends a prelude or a declaration, or `end` */
function findStop(tokens: readonly StyleToken[], begin: number, end: number): number {
  let index = begin;
  while (index < end) {
    const token = tokens[index];
    if (token?.type === tokenTypes.LeftCurlyBracket || token?.type === tokenTypes.Semicolon) return index;
    index = token === undefined || token.closer === -1 ? index + 1 : token.closer + 1;
  }
  return end;
}

/** Whether a declaration begins at `index`. As in browsers, only a custom property may have a block as its value. */
function isDeclaration({ source, tokens }: TokenSource, index: number, hasBlock: boolean): boolean {
  const [name, next] = tokens.slice(index, index + 4).filter((token) => !isBlank(token));
  if (name?.type !== tokenTypes.Ident || next?.type !== tokenTypes.Colon) return false;
  return !hasBlock || source.startsWith("--", name.start);
}

interface BlockRange {
  begin: number;
  end: number;
}

function readRule(from: TokenSource, index: number, stop: number, content: BlockRange): RuleItem {
  const selectors = parsePiece(from, index, stop, { context: "selectorList" });
  const start = from.tokens[index]?.start ?? 0;
  if (selectors.type !== "SelectorList") throw new StyleRefusal(start, "A selector is expected.");
  return { kind: "rule", start, selectors, items: readItems(from, content.begin, content.end, true) };
}

function readAtRule(
  from: TokenSource,
  index: number,
  stop: number,
  content: BlockRange,
  isInRule: boolean,
): AtRuleItem {
  const start = from.tokens[index]?.start ?? 0;
  const name = from.source.slice(start + 1, from.tokens[index]?.end).toLowerCase();
  const prelude = parsePiece(from, index + 1, stop, { context: "atrulePrelude", atrule: name });
  if (prelude.type !== "AtrulePrelude") throw new StyleRefusal(start, `The rule @${name} is not valid.`);
  const hasDeclarations = isInRule || name === "font-face" || name === "property";
  return { kind: "at-rule", start, name, prelude, items: readItems(from, content.begin, content.end, hasDeclarations) };
}

function readDeclaration(from: TokenSource, index: number, stop: number): StyleItem {
  const declaration = parsePiece(from, index, stop, { context: "declaration" });
  const start = from.tokens[index]?.start ?? 0;
  if (declaration.type !== "Declaration") throw new StyleRefusal(start, "A declaration is expected.");
  return { kind: "declaration", start, declaration };
}

/** Parses the tokens from `begin` to before `stop` with css-tree, but without css-tree's repairs. */
function parsePiece(
  { source, tokens }: TokenSource,
  begin: number,
  stop: number,
  options: { context: string; atrule?: string },
): CssNode {
  const piece = tokens.slice(begin, stop);
  const last = piece.findLast((token) => !isBlank(token));
  const start = tokens[begin]?.start ?? source.length;
  // css-tree drops a comma at the end of a list without an error.
  if (last?.type === tokenTypes.Comma) throw new StyleRefusal(last.start, "Nothing follows this comma.");
  try {
    const tree = parse(source.slice(start, last?.end ?? start), {
      ...options,
      positions: true,
      offset: start,
      parseCustomProperty: true,
      onParseError(error, fallback) {
        // `fallback` is null while css-tree tries the forms of a condition. This is no error yet, because another form
        // can still match. If all forms fail, css-tree makes a node that `refuseUnparsed` refuses.
        if (fallback !== null) throw error;
      },
    });
    refuseUnparsed(tree, start);
    return tree;
  } catch (error) {
    if (isParseError(error)) throw new StyleRefusal(error.offset, `${error.message}.`);
    throw error;
  }
}

function isParseError(error: unknown): error is Error & { offset: number } {
  return error instanceof Error && !(error instanceof StyleRefusal) && "offset" in error;
}

function refuseUnparsed(tree: CssNode, start: number): void {
  walk(tree, (node) => {
    const isUnknown =
      node.type === "Raw" ||
      node.type === "GeneralEnclosed" ||
      (node.type === "Condition" &&
        [...node.children].some((each) => each.type === "Identifier" && !isConnective(each)));
    if (isUnknown) throw new StyleRefusal(node.loc?.start.offset ?? start, "Unexpected input.");
  });
}

function isConnective({ name }: Identifier): boolean {
  return ["and", "not", "or"].includes(name.toLowerCase());
}
