import { fsyncSync, readFileSync, writeSync } from "node:fs";
import { styleText } from "node:util";
import { codeOf, messageOf, SdsError } from "../domain/error.ts";
import { escapeControls, masked, printable } from "../lib/log.ts";

const CLOSE_ON_EXEC = 0o2_000_000;

/**
 * Whether the program was started with a closed stdout, as by `>&-`. Bun then opens /dev/null instead, and all writes
 * seem to succeed. Linux shows the difference: only a file that Bun opened has the close-on-exec flag.
 */
function isStdoutClosed(): boolean {
  try {
    const [, flags = "0"] = /^flags:\s*([0-7]+)$/m.exec(readFileSync("/proc/self/fdinfo/1", "utf8")) ?? [];
    return (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) !== 0;
  } catch {
    return false;
  }
}

/** Computed once, because a check for each line would cost more than printing the line. */
const IS_STDOUT_CLOSED = isStdoutClosed();

/** The width to use if a terminal does not report its own width. */
export const DEFAULT_COLUMNS = 80;

/** The beginning of the error message if stdout cannot be written. Nothing more is printed to stdout then. */
export const CANNOT_WRITE = "cannot write to stdout";

/** Prints a line of data to stdout. Messages go to stderr, see `tell`. @throws SdsError `failed` for a closed stdout */
export function printLine(text: string): void {
  if (IS_STDOUT_CLOSED) throw cannotWrite("it is closed");
  process.stdout.write(`${text}\n`);
}

/** Writes text to stdout. Returns when the operating system has the text. @throws SdsError `failed` */
export async function writeOut(text: string): Promise<void> {
  if (IS_STDOUT_CLOSED) throw cannotWrite("it is closed");
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (thrown) {
      if (codeOf(thrown) !== "EAGAIN") throw cannotWrite(messageOf(thrown));
      await Bun.sleep(1);
    }
  }
}

/** Syncs stdout to the disk, if it is a file. @throws SdsError `failed` */
export function syncStdout(): void {
  try {
    fsyncSync(1);
  } catch (thrown) {
    // Pipes and terminals cannot be synced.
    if (!["EINVAL", "ENOTSUP", "EROFS"].includes(codeOf(thrown))) throw cannotWrite(messageOf(thrown));
  }
}

function cannotWrite(why: string): SdsError {
  return new SdsError("failed", `${CANNOT_WRITE}: ${why}`);
}

let hasPrinted = false;

/** Whether this process has printed JSON. If so, an error goes only to stderr: stdout must have one JSON document. */
export function hasPrintedJson(): boolean {
  return hasPrinted;
}

/** Prints JSON. Characters that control a terminal or its text direction become escapes. @param indent in spaces */
export function printJson(value: unknown, indent?: number): void {
  const json = JSON.stringify(value, null, indent);
  hasPrinted = true;
  printLine(escapeControls(json));
}

/** Prints a secret alone, or as JSON. */
export function printSecret(secret: string, json: boolean | undefined): void {
  if (json) printJson({ secret });
  else printLine(secret);
}

/** Masks secrets and control characters in a message, because parts come from arguments, files and servers. */
export function safeMessage(text: string): string {
  return printable(masked(text));
}

/** Prepares a stored text for stdout. If stdout is a terminal, control characters are replaced with visible codes. */
export function forStdout(text: string): string {
  return process.stdout.isTTY ? printable(text) : text;
}

/** Prints a message to stderr, without secrets and control characters. */
export function tell(text: string): void {
  process.stderr.write(`${safeMessage(text)}\n`);
}

export function warn(warnings: readonly string[]): void {
  for (const warning of warnings) tell(`sds: warning: ${warning}`);
}

/** Prints a list as JSON or as a table. For an empty table, prints `ifEmpty`. @param columns as for `printTable` */
export function printList<T>(
  json: boolean | undefined,
  entries: readonly T[],
  ifEmpty: string,
  columns: Record<string, (entry: T) => string>,
): void {
  if (json) printJson(entries);
  else if (entries.length === 0) tell(ifEmpty);
  else printTable(entries, columns);
}

const GAP = "  ";
/** Minimum width of a column that is cut to fit the terminal. */
const MIN_CUT_WIDTH = 8;

/**
 * Prints a table, each column as wide as its longest text. On a terminal, the widest columns are cut until a line fits.
 * The first column is not cut, because it names the entry.
 * @param columns for each heading, a function that returns the text of an entry
 */
export function printTable<T>(entries: readonly T[], columns: Record<string, (entry: T) => string>): void {
  const headings = Object.keys(columns);
  const rows = entries.map((entry) => Object.values(columns).map((text) => printable(text(entry))));
  const widest = headings.map((heading, column) =>
    Math.max(...[heading, ...rows.map((row) => row[column] ?? "")].map((text) => Bun.stringWidth(text))),
  );
  const widths = process.stdout.isTTY ? fitted(widest, process.stdout.columns || DEFAULT_COLUMNS) : widest;
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => padded(cell, widths[column] ?? 0))
      .join(GAP)
      .trimEnd();
  printLine(styleText("bold", line(headings), { stream: process.stdout }));
  for (const row of rows) printLine(line(row));
}

/** Cuts the widest columns until the line fits, or until all columns but the first have the minimum width. */
function fitted(widths: readonly number[], columns: number): number[] {
  const room = columns - GAP.length * (widths.length - 1);
  const fitting = [...widths];
  while (fitting.reduce((sum, width) => sum + width, 0) > room) {
    const widest = Math.max(...fitting.slice(1));
    if (widest <= MIN_CUT_WIDTH) break;
    fitting[fitting.indexOf(widest, 1)] = widest - 1;
  }
  return fitting;
}

/** Pads or cuts a text to a width, in columns of a terminal. */
function padded(text: string, width: number): string {
  const cut = Bun.stringWidth(text) > width ? Bun.sliceAnsi(text, 0, width, "…") : text;
  return cut + " ".repeat(Math.max(0, width - Bun.stringWidth(cut)));
}

/** Prints a name and its value on each line. */
export function printFields(fields: Record<string, string>): void {
  const width = Math.max(...Object.keys(fields).map((name) => name.length));
  for (const [name, value] of Object.entries(fields)) printLine(printable(`${name.padEnd(width)}  ${value}`));
}
