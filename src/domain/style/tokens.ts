import { ident, string, tokenize, tokenTypes, url } from "css-tree/dist/csstree.esm";

/** Maximum number of open brackets. More could exhaust a parser's stack. */
const MAX_DEPTH = 16;
/** Maximum number of tokens in a style, to bound the time of the checks. Real styles have up to 20,000 tokens. */
const MAX_TOKENS = 30_000;

export const TOO_LARGE = "This style is too large.";

/** The allowed at-rules. */
const AT_RULES = new Set(["container", "font-face", "keyframes", "media", "property", "supports"]);

/** At-rules that only scoping may write. */
const OWN_AT_RULES = new Set(["layer", "scope"]);
/** Maximum number of bracket levels that scoping adds, around a rule and in its selector. */
const OWN_DEPTH = 3;

/** The allowed functions. All others are refused, because browsers get new functions that load files. */
const FUNCTIONS = new Set(
  [
    "abs acos asin atan atan2 calc calc-size clamp cos exp hypot log max min mod pow rem round sign sin sqrt tan",
    "color color-mix hsl hsla hwb lab lch light-dark oklab oklch rgb rgba",
    "conic-gradient linear-gradient radial-gradient",
    "repeating-conic-gradient repeating-linear-gradient repeating-radial-gradient",
    "matrix matrix3d perspective rotate rotate3d rotatex rotatey rotatez scale scale3d scalex scaley scalez",
    "skew skewx skewy translate translate3d translatex translatey translatez",
    "blur brightness contrast drop-shadow grayscale hue-rotate invert opacity saturate sepia",
    "circle ellipse inset path polygon rect shape xywh",
    "cubic-bezier linear steps",
    "fit-content minmax repeat",
    "attr counter counters env format image-set tech url var",
    "dir has is lang not nth-child nth-last-child nth-last-of-type nth-of-type where",
    "selector style",
  ].flatMap((names) => names.split(" ")),
);

const REQUEST_FUNCTIONS = new Set(
  "cross-fade element expression image local paint src -moz-element -webkit-cross-fade -webkit-image-set".split(" "),
);

/** Functions whose value can put an address into image-set(). */
const SUBSTITUTIONS = new Set(["attr", "env", "var"]);

const DATA_URL =
  /^data:(?:image\/(?:png|jpeg|gif|webp|avif)|font\/woff2)(?:;charset=utf-8)?;base64,[a-z0-9+/]*={0,2}$/i;

/**
 * Characters that may stand outside of strings. Some tokenizers do not read the other characters as parts of names, and
 * css-tree skips U+FEFF in some places: https://drafts.csswg.org/css-syntax-3/#non-ascii-ident-code-point
 */
const NAME_CHARACTERS = [
  String.raw`\0-\x7f\xb7\xc0-\xd6\xd8-\xf6\xf8-\u037d\u037f-\u1fff\u200c-\u200d\u203f\u2040\u2070-\u218f`,
  String.raw`\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufefe\uff00-\ufffd\u{10000}-\u{10ffff}`,
];
const NO_NAME_CHARACTER = new RegExp(`[^${NAME_CHARACTERS.join("")}]`, "u");

/**
 * Matches a token whose last character belongs to a hexadecimal escape. A space after the token would also belong to
 * the escape.
 */
const OPEN_ESCAPE = /(?:^|[^\\])(?:\\\\)*\\[0-9a-f]{1,6}$/i;

/** Thrown while a style is scoped. `scopeStylesheet` returns it as a refusal. */
export class StyleRefusal extends Error {
  /** The offset of the refused character in the source. */
  readonly offset: number;

  constructor(offset: number, reason: string) {
    super(reason);
    this.offset = offset;
  }
}

export interface StyleToken {
  type: number;
  start: number;
  end: number;
  /** The index of the token that closes this bracket; -1 for other tokens. */
  closer: number;
}

interface OpenBracket {
  token: StyleToken;
  /** The name of the function in lower case; "" for a bare bracket. */
  name: string;
  closedBy: number;
}

const CLOSERS = new Map([
  [tokenTypes.Function, tokenTypes.RightParenthesis],
  [tokenTypes.LeftParenthesis, tokenTypes.RightParenthesis],
  [tokenTypes.LeftSquareBracket, tokenTypes.RightSquareBracket],
  [tokenTypes.LeftCurlyBracket, tokenTypes.RightCurlyBracket],
]);
const CLOSING = new Set(CLOSERS.values());

export function isBlank({ type }: StyleToken): boolean {
  return type === tokenTypes.WhiteSpace || type === tokenTypes.Comment;
}

/**
 * Reads a whole style. Checks each token at every position, also in selectors, conditions and custom properties. So a
 * style that passes this check sends no request.
 * @param isScoped whether `scopeStylesheet` has written this text
 * @throws StyleRefusal
 */
export function readTokens(source: string, isScoped = false): StyleToken[] {
  checkCharacters(source);
  // The added newline shows which token is still open at the end of the source. An open string becomes a bad token. An
  // open comment, url() or escape contains the newline.
  const text = `${source}\n`;
  const tokens: StyleToken[] = [];
  tokenize(text, (type, start, end) => {
    tokens.push({ type, start, end, closer: -1 });
  });
  // This limit is only for a merchant's text. `scopeStylesheet` limits the size of the scoped text.
  const tooMany = isScoped ? undefined : tokens.filter((token) => !isBlank(token))[MAX_TOKENS];
  if (tooMany !== undefined) throw new StyleRefusal(tooMany.start, TOO_LARGE);
  const open: OpenBracket[] = [];
  for (const [index, token] of tokens.entries()) {
    checkToken(token, text);
    if (token.type === tokenTypes.AtKeyword) checkAtRule(token, text, isScoped);
    if (token.type === tokenTypes.Function) checkFunction(tokens, index, text);
    checkInImageSet(token, text, open);
    matchBracket(token, index, text, open, isScoped ? MAX_DEPTH + OWN_DEPTH : MAX_DEPTH);
  }
  const unclosed = open.at(-1);
  if (unclosed !== undefined) throw new StyleRefusal(unclosed.token.start, "This bracket is not closed.");
  return tokens.filter(({ end }) => end <= source.length);
}

function checkCharacters(source: string): void {
  const nullAt = source.indexOf("\0");
  if (nullAt !== -1) throw new StyleRefusal(nullAt, "The character U+0000 is not allowed.");
  const surrogateAt = source.search(/\p{Surrogate}/u);
  if (surrogateAt !== -1) throw new StyleRefusal(surrogateAt, "This character is damaged: half of it is missing.");
}

function checkToken({ type, start, end }: StyleToken, text: string): void {
  const written = text.slice(start, end);
  const refuse = (reason: string): never => {
    throw new StyleRefusal(start, reason);
  };
  if (type === tokenTypes.WhiteSpace) return;
  if (type === tokenTypes.BadString) refuse("This string is not closed on its line.");
  if (end === text.length) refuse("The style ends inside a comment, url() or escape.");
  if (type === tokenTypes.Comment || type === tokenTypes.String) return;
  if (type === tokenTypes.BadUrl) refuse("This url() is not valid.");
  if (type === tokenTypes.CDO || type === tokenTypes.CDC) refuse("Comments of HTML are not allowed: use /* */.");
  if (type === tokenTypes.Url) checkAddress(url.decode(written), start);
  if (type === tokenTypes.Delim && written === "\\") refuse("A backslash can't stand here.");
  // A space can follow this token in our output. The space would become a part of the escape.
  if (OPEN_ESCAPE.test(written)) refuse("End this escape with a space.");
  const character = written.match(NO_NAME_CHARACTER)?.[0].codePointAt(0);
  if (character === undefined) return;
  refuse(`The character U+${character.toString(16).toUpperCase().padStart(4, "0")} is allowed only in strings.`);
}

function checkAtRule({ start, end }: StyleToken, text: string, isScoped: boolean): void {
  const written = text.slice(start + 1, end);
  const name = ident.decode(written).toLowerCase();
  if (name === "import")
    throw new StyleRefusal(start, "The rule @import is not allowed: a style can't load other files.");
  if (!AT_RULES.has(name) && !(isScoped && OWN_AT_RULES.has(name)))
    throw new StyleRefusal(start, `The rule @${name} is not allowed.`);
  if (written.includes("\\")) throw new StyleRefusal(start, `Write the rule @${name} without escapes.`);
}

function checkFunction(tokens: readonly StyleToken[], index: number, text: string): void {
  const { start = 0, end = 0 } = tokens[index] ?? {};
  const written = text.slice(start, end - 1);
  const name = ident.decode(written).toLowerCase();
  if (REQUEST_FUNCTIONS.has(name))
    throw new StyleRefusal(start, `The function ${name}() is not allowed, because it can load files.`);
  if (!FUNCTIONS.has(name)) throw new StyleRefusal(start, `The function ${name}() is not allowed.`);
  // The tokenizer does not recognize url( if it is written with escapes. Browsers decode the name first, and load the
  // file.
  if (written.includes("\\")) throw new StyleRefusal(start, `Write the function ${name}() without escapes.`);
  if (name !== "url") return;
  const address = tokens.slice(index + 1, index + 3).find((token) => !isBlank(token));
  if (address?.type !== tokenTypes.String) throw new StyleRefusal(start, "This url() is not valid.");
  checkAddress(string.decode(text.slice(address.start, address.end)), start);
}

function checkAddress(address: string, start: number): void {
  if (DATA_URL.test(address)) return;
  throw new StyleRefusal(
    start,
    "In url(), only data:image/png, jpeg, gif, webp or avif, and data:font/woff2 are allowed, each with ;base64.",
  );
}

/** A bare string in image-set() is an address. */
function checkInImageSet(token: StyleToken, text: string, open: readonly OpenBracket[]): void {
  if (!open.some(({ name }) => name === "image-set")) return;
  const isAddress = token.type === tokenTypes.String && open.at(-1)?.name !== "url";
  const isSubstitution = token.type === tokenTypes.Function && SUBSTITUTIONS.has(functionName(text, token));
  if (isAddress || isSubstitution)
    throw new StyleRefusal(token.start, "In image-set(), write each image as url() or as a gradient.");
}

function functionName(text: string, { start, end }: StyleToken): string {
  return text.slice(start, end - 1).toLowerCase();
}

function matchBracket(token: StyleToken, index: number, text: string, open: OpenBracket[], maxDepth: number): void {
  const closedBy = CLOSERS.get(token.type);
  if (closedBy !== undefined) {
    if (open.length === maxDepth)
      throw new StyleRefusal(token.start, `More than ${maxDepth} brackets are open at once.`);
    const name = token.type === tokenTypes.Function ? functionName(text, token) : "";
    open.push({ token, name, closedBy });
  } else if (CLOSING.has(token.type)) {
    const opener = open.pop();
    if (opener?.closedBy !== token.type) throw new StyleRefusal(token.start, "This bracket closes nothing.");
    opener.token.closer = index;
  }
}
