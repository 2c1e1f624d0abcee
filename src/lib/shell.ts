import { CONTROLS } from "./log.ts";

/** An apostrophe, or characters that a shell or terminal may interpret when somebody pastes them. */
const SPECIAL = new RegExp(`'|(?:[!\\n\\t]|${CONTROLS.source})+`, "gu");

/**
 * Quotes a text as one word for bash and zsh, also for pasting. Control and invisible characters, newlines, tabs and
 * exclamation marks are escaped. Otherwise an interactive shell would replace `!` with a command of its history.
 */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll(SPECIAL, (special) => (special === "'" ? "'\\''" : `'$'${escaped(special)}''`))}'`;
}

function escaped(text: string): string {
  return Buffer.from(text).toString("hex").replaceAll(/../g, "\\x$&");
}
