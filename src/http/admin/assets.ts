import pico from "@picocss/pico/css/pico.min.css" with { type: "text" };
import { CryptoHasher } from "bun";
import { queryOf, type Route } from "../route.ts";
import style from "./admin.css" with { type: "text" };
import script from "./admin.js" with { type: "text" };

const JAVASCRIPT = "text/javascript; charset=utf-8";
const CSS = "text/css; charset=utf-8";
const FILES: Record<string, { text: string; type: string }> = {
  "/admin/pico.css": { text: pico, type: CSS },
  "/admin/admin.css": { text: style, type: CSS },
  "/admin/admin.js": { text: script, type: JAVASCRIPT },
};
const VERSION = new CryptoHasher("sha256").update(`${pico}${style}${script}`).digest("hex").slice(0, 12);

/** The path of a file with its version, so that a browser keeps it until the program changes. */
export function versioned(path: string): string {
  return `${path}?v=${VERSION}`;
}

/** The styles and scripts that all pages share. They hold nothing of a shop and need no session. */
export function assetRoutes(): Route[] {
  return Object.entries(FILES).map(([path, file]) => ({
    path,
    methods: { GET: ({ url }) => respondAsset(file, url) },
  }));
}

function respondAsset(file: { text: string; type: string }, url: string): Response {
  const isCurrent = new URLSearchParams(queryOf(url)).get("v") === VERSION;
  const keep = isCurrent ? "public, max-age=31536000, immutable" : "no-cache";
  return new Response(file.text, {
    headers: { "Content-Type": file.type, "Cache-Control": keep, "X-Content-Type-Options": "nosniff" },
  });
}
