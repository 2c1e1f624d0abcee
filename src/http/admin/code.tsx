/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { bytesText } from "../../lib/text.ts";

/** The most characters that are shown of a text. */
const SHOWN = 64 * 1024;
/** The most characters of a text and its markup, so that a page stays small. */
const COLOURED = 100_000;
/** Markup of a token: the span around it, and its escaped quotes. */
const MARKUP = 36;

/** A key with its colon, a string, a number, or a word. Strings in JSON have no line end, and escape their quotes. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|-?\d[\d.eE+-]*|true|false|null/g;

interface CodeProps {
  id: string;
  /** Name of the part of the page, for screen readers. */
  label: string;
  text: string;
}

/** Renders a text. JSON has colours. Of a long text the beginning is shown. */
export function Code({ id, label, text }: CodeProps) {
  const isCut = text.length > SHOWN;
  const shown = isCut ? text.slice(0, SHOWN) : text;
  return (
    <section aria-label={label}>
      <pre tabIndex={0}>
        <code id={id} class="body">
          {isCut ? shown : coloured(shown)}
        </code>
      </pre>
      {isCut ? (
        <p>
          These are the first {bytesText(SHOWN)} of {bytesText(text.length)}.
        </p>
      ) : null}
    </section>
  );
}

/** Colours JSON. @returns the text itself if it has no tokens or too many */
function coloured(text: string): ComponentChildren {
  const tokens = [...text.matchAll(TOKEN)];
  if (text.length + tokens.length * MARKUP > COLOURED) return text;
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
