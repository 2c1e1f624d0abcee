import { attributesIn, TAG } from "../support/page-problems.ts";
import { codeOf } from "./page-parts.ts";

/** Elements that begin a line of the outline. */
const BLOCKS = new Set(
  (
    "details div dl dt fieldset figcaption figure footer form h1 h2 h3 header label legend li main nav ol option p pre " +
    "section summary svg table title tr ul"
  ).split(" "),
);
const STATES = ["checked", "disabled", "hidden", "required", "selected"];
/** Classes that change what a text means, such as its color. */
const TONES = /\b(bad|badge|dead|delivered|pending|retrying|warning)\b/;

/**
 * Lists the content of a page, one line for each block. Links show their targets in parentheses. Fields show names and
 * values in brackets. Tones are in braces before their texts. Hidden elements are included.
 */
export function outlineOf(html: string): string {
  const page = html.replaceAll(/<!doctype html>|<(script|style)\b.*?<\/\1>/gs, "");
  const marked = page.replaceAll(TAG, (_, slash: string, name: string, attributes: string) =>
    slash === "/" ? endOf(name) : beginningOf(name, attributesIn(attributes)),
  );
  return codeOf(marked)
    .split("\n")
    .map((line) => line.replaceAll(/\s+/g, " ").replace(/ \| $/, "").trim())
    .filter((line) => line !== "")
    .join("\n");
}

/** The title of a page, and the rest of the page from an element on, without the header that all pages share. */
export function pageFrom(html: string, tag: string): string {
  const title = html.indexOf("<title");
  const start = html.indexOf(`<${tag}`);
  if (title === -1 || start === -1) throw new Error(`the page has no <title> or no <${tag}>`);
  return html.slice(title, html.indexOf("</title>")) + html.slice(start);
}

function endOf(name: string): string {
  if (name === "dt") return ": ";
  if (name === "td" || name === "th") return " | ";
  return BLOCKS.has(name) ? "\n" : "";
}

function beginningOf(name: string, attributes: ReadonlyMap<string, string>): string {
  const classes = attributes.get("class") ?? "";
  return `${markOf(name, attributes)}${TONES.test(classes) ? `{${classes}} ` : ""}`;
}

function markOf(name: string, attributes: ReadonlyMap<string, string>): string {
  const values = (...keys: string[]) => keys.flatMap((key) => attributes.get(key) ?? []).join(" ");
  const states = STATES.filter((state) => attributes.has(state)).map((state) => ` ${state}`);
  switch (name) {
    case "a":
      return `(${values("href")}) `;
    case "form":
      return `\n[form ${values("method", "action")}] `;
    case "input":
      return `[${attributes.get("type") ?? "text"} ${values("name")}=${values("value")}${states.join("")}] `;
    case "select":
    case "textarea":
      return `[${name} ${values("name")}${states.join("")}] `;
    case "option":
      return `\n[option =${values("value")}${states.join("")}] `;
    case "button":
      return `[${["button", values("formaction", "name", "value")].join(" ").trim()}${states.join("")}] `;
    case "rect":
      return `[rect x=${values("x")} y=${values("y")} width=${values("width")} height=${values("height")}] `;
    default:
      return BLOCKS.has(name) ? "\n" : "";
  }
}
