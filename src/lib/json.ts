export type JsonObject = Record<string, unknown>;

type Reviver = (key: string, value: unknown, context?: { source?: string }) => unknown;

/** Parses JSON. @returns undefined for text that is not a JSON object */
export function parseObject(text: string, reviver?: Reviver): JsonObject | undefined {
  try {
    return asObject(JSON.parse(text, reviver));
  } catch {
    return undefined;
  }
}

/**
 * Parses JSON that can have numbers above 2^53, such as the platform's ids. JSON.parse would round such numbers, so
 * this function returns them as strings.
 * @returns undefined for text that is not a JSON object
 */
export function parseExact(text: string): JsonObject | undefined {
  return parseObject(text, (_key, value, { source } = {}) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^\d+$/.test(source ?? "") ? source : value,
  );
}

/** Returns the value if it is an object, and not an array; otherwise undefined. */
export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;
}

/** Codes of the structural characters of JSON (RFC 8259). */
export const SPACE = 0x20;
export const QUOTE = 0x22;
const COMMA = 0x2c;
export const OPEN_BRACKET = 0x5b;
export const BACKSLASH = 0x5c;
export const CLOSE_BRACKET = 0x5d;
export const LETTER_U = 0x75;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;

/** Yielded where an array is broken. An empty text is not valid JSON, so callers notice the error. */
const BROKEN = "";

/**
 * Splits a text that is one JSON value, a JSON array, or lines of one JSON value each. Yields the text of the value,
 * of each element, or of each line that is not blank. If every part is valid JSON, the whole text is valid.
 */
export function* splitJson(text: string): Generator<string, void> {
  const start = skipBlank(text, 0);
  if (start === text.length) return;
  if (text[start] === "[") return yield* elements(text, start + 1);
  if (text[start] === "{") {
    const end = skipValue(text, start);
    const isWhole = skipBlank(text, end) === text.length;
    if (isWhole) return yield text.slice(start, end);
  }
  yield* lines(text);
}

function* elements(text: string, first: number): Generator<string, void> {
  let at = skipBlank(text, first);
  while (text[at] !== "]") {
    const end = skipValue(text, at);
    yield text.slice(at, end);
    at = skipBlank(text, end);
    if (text[at] !== ",") break;
    at = skipBlank(text, at + 1);
    // An element is missing after the last comma.
    if (text[at] === "]") return yield BROKEN;
  }
  const isWhole = text[at] === "]" && skipBlank(text, at + 1) === text.length;
  if (!isWhole) yield BROKEN;
}

function* lines(text: string): Generator<string, void> {
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf("\n", start);
    const end = newline === -1 ? text.length : newline;
    const line = text.slice(start, end);
    if (line.trim() !== "") yield line;
    start = end + 1;
  }
}

/** Skips white space. @returns the index of the next other character */
function skipBlank(text: string, start: number): number {
  for (let at = start; at < text.length; at += 1) {
    if (!isBlank(text.charCodeAt(at))) return at;
  }
  return text.length;
}

/** Skips a value. @returns its end, or the end of the text if the value is cut off */
function skipValue(text: string, start: number): number {
  let depth = 0;
  let inString = false;
  for (let at = start; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (inString) {
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) depth += 1;
    else if (depth > 0) {
      if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth -= 1;
      if (depth === 0) return at + 1;
    } else if (code === COMMA || code === CLOSE_BRACKET || code === CLOSE_BRACE || isBlank(code)) return at;
  }
  return text.length;
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
