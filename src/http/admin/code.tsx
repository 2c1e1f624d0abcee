/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { bytesText } from "../../lib/text.ts";

/** Maximum length of a text as HTML, in characters. The limit keeps the page small. */
const MAX_HTML = 100_000;
/** Length of the HTML of the span around a token, in characters. */
const SPAN = 29;
/** Length of the longest escaped character, `&quot;`. */
const ESCAPED = 6;

/** A key with its colon, a string, a number, or a word. JSON strings contain no newline, and escape their quotes. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|-?\d[\d.eE+-]*|true|false|null/g;

interface CodeProps {
  id: string;
  /** Name of this part of the page, for screen readers. */
  label: string;
  text: string;
}

/** Renders a text. JSON is coloured. If the text is long, only its beginning is shown. */
export function Code({ id, label, text }: CodeProps) {
  const shown = withinHtml(text);
  const isCut = shown.length < text.length;
  return (
    <section aria-label={label}>
      <pre tabIndex={0}>
        <code id={id} class="body">
          {isCut ? shown : coloured(text)}
        </code>
      </pre>
      {isCut ? (
        <p>
          These are the first {bytesText(shown.length)} of {bytesText(text.length)}.
        </p>
      ) : null}
    </section>
  );
}

/** Indents JSON. Leaves a body unchanged if it has a number that JSON.parse would round. */
export function readable(body: string): string {
  try {
    const laidOut = JSON.stringify(JSON.parse(body), null, 2);
    return JSON.stringify(JSON.parse(laidOut)) === body ? laidOut : body;
  } catch {
    return body;
  }
}

/** Cuts a text so that its HTML has at most MAX_HTML characters. */
export function withinHtml(text: string): string {
  let length = 0;
  for (let at = 0; at < text.length; at += 1) {
    length += htmlLength(text.charAt(at));
    if (length > MAX_HTML) return text.slice(0, at);
  }
  return text;
}

function htmlLength(character: string): number {
  return character === '"' || character === "<" || character === "&" ? ESCAPED : 1;
}

/** Colours JSON. @returns the text without colours if the HTML would be too large */
function coloured(text: string): ComponentChildren {
  const tokens = [...text.matchAll(TOKEN)];
  const quotes = tokens.filter(([token]) => token.startsWith('"')).length * 2;
  if (text.length + tokens.length * SPAN + quotes * (ESCAPED - 1) > MAX_HTML) return text;
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const { 0: token, 1: colon = "", index } of tokens) {
    const name = colon === "" ? token : token.slice(0, -colon.length);
    parts.push(text.slice(end, index), <span class={kindOf(name, colon !== "")}>{name}</span>, colon);
    end = index + token.length;
  }
  return [...parts, text.slice(end)];
}

function kindOf(token: string, isKey: boolean): string {
  if (isKey) return "key";
  if (token.startsWith('"')) return "string";
  if (token === "null") return "null";
  return token === "true" || token === "false" ? "boolean" : "number";
}

/** Renders a text. As in Markdown, text between backticks becomes code. */
export function InlineCode({ text }: { text: string }) {
  return <>{text.split("`").map((part, index) => (index % 2 === 1 ? <code>{part}</code> : part))}</>;
}
