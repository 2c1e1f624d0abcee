import pico from "@picocss/pico/css/pico.min.css" with { type: "text" };
import { createDocument, type Document, versionedAddress } from "../documents.ts";
import style from "./docs.css" with { type: "text" };

/** Where the style of all pages is. */
export const STYLE_PATH = "/docs/docs.css";

let made: Document | undefined;

/** The style of all pages, in one file. */
export function styleDocument(): Document {
  made ??= createDocument(`${pico}\n${style}`);
  return made;
}

/** The address of the style with its version. */
export function styleAddress(): string {
  return versionedAddress(STYLE_PATH, styleDocument());
}
