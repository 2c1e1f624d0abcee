import { createDocument, respondVersioned, versionedAddress } from "../documents.ts";
import base from "../look/base.css" with { type: "text" };
import icon from "../look/icon.svg" with { type: "text" };
import type { Route } from "../routes.ts";
import style from "./admin.css" with { type: "text" };
import script from "./admin.js" with { type: "text" };

const JAVASCRIPT = "text/javascript; charset=utf-8";
const CSS = "text/css; charset=utf-8";
const FILES = {
  "/assets/icon.svg": { document: createDocument(icon), type: "image/svg+xml" },
  "/assets/page.css": { document: createDocument(`${base}\n${style}`), type: CSS },
  "/assets/page.js": { document: createDocument(script), type: JAVASCRIPT },
};

/** Returns the file's address with its version, so that browsers keep the file until the version changes. */
export function assetAddress(path: keyof typeof FILES): string {
  return versionedAddress(path, FILES[path].document);
}

/** Serves the styles and the script of all pages. They contain no data of a shop and need no session. */
export function assetRoutes(): Route[] {
  return Object.entries(FILES).map(([path, { document, type }]) => ({
    path,
    methods: { GET: (request) => respondVersioned(request, document, type) },
  }));
}
