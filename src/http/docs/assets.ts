import pico from "@picocss/pico/css/pico.min.css" with { type: "text" };
import { createDocument, type Document, versionedAddress } from "../documents.ts";
import style from "./docs.css" with { type: "text" };

export const STYLE_PATH = "/docs/docs.css";

let made: Document | undefined;

/** Returns the stylesheet of all pages. */
export function styleDocument(): Document {
  made ??= createDocument(`${pico}\n${style}`);
  return made;
}

export function styleAddress(): string {
  return versionedAddress(STYLE_PATH, styleDocument());
}
