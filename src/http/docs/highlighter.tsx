/** @jsxImportSource preact */
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import go from "highlight.js/lib/languages/go";
import json from "highlight.js/lib/languages/json";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import typescript from "highlight.js/lib/languages/typescript";
import type { ComponentChildren } from "preact";

// Import this file only to render a page: loading it takes some milliseconds.

const LANGUAGES = { sh: bash, ts: typescript, js: typescript, python, ruby, php, go, json };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

/** The tokens that highlight.js writes: a span's start or end, one of five entities, or text. */
const PART = /<span class="([^"]*)">|(<\/span>)|&(amp|lt|gt|quot|#x27);|([^<&]+)/g;
const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#x27": "'" };

/** Colours code. @returns the code itself for an unknown language */
export function highlight(code: string, language: string | undefined): ComponentChildren {
  if (language === undefined || hljs.getLanguage(language) === undefined) return code;
  const top: ComponentChildren[] = [];
  const open: { kind: string; children: ComponentChildren[] }[] = [];
  const add = (child: ComponentChildren) => (open.at(-1)?.children ?? top).push(child);
  for (const [, kind, end, entity, text] of hljs.highlight(code, { language }).value.matchAll(PART)) {
    if (kind !== undefined) open.push({ kind, children: [] });
    else if (end !== undefined) {
      const span = open.pop();
      add(<span class={span?.kind}>{span?.children}</span>);
    } else add(entity === undefined ? text : ENTITIES[entity]);
  }
  return top;
}
