import pico from "@picocss/pico/css/pico.min.css" with { type: "text" };
import style from "./docs.css" with { type: "text" };
import { versionOf } from "./documents.ts";

/** The style of all pages, in one file. */
export const STYLE = `${pico}\n${style}`;
const PATH = "/docs/docs.css";
const VERSION = versionOf(STYLE);

/** The path of the style with its version, so that a browser keeps it until the program changes. */
export const STYLE_PATH = `${PATH}?v=${VERSION}`;
