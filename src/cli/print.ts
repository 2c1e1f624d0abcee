import { fsyncSync, readFileSync, writeSync } from "node:fs";
import { styleText } from "node:util";
import { codeOf, messageOf, SdsError } from "../domain/error.ts";
import { CONTROLS, printable } from "../lib/log.ts";

const CLOSE_ON_EXEC = 0o2_000_000;

/**
 * Whether the program was started with a closed stdout, as by `>&-`. Bun then opens /dev/null in its place, and all
 * writes seem to succeed. Linux shows the difference: only a file that this process opened itself is closed on exec.
 */
function isStdoutClosed(): boolean {
  try {
    const [, flags = "0"] = /^flags:\s*([0-7]+)$/m.exec(readFileSync("/proc/self/fdinfo/1", "utf8")) ?? [];
    return (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) !== 0;
  } catch {
    return false;
  }
}

/** It stays as it was at the start. Looking for each line would cost more than the line. */
const IS_STDOUT_CLOSED = isStdoutClosed();

/** Prints data to stdout. Nothing else is written there. @throws SdsError `failed` if stdout is closed */
export function printLine(text: string): void {
  if (IS_STDOUT_CLOSED) throw cannotWrite("it is closed");
  process.stdout.write(`${text}\n`);
}

/**
 * Prints what cannot be shown again, and returns when it is written.
 * @throws SdsError `failed` if it could not be written
 */
export async function printOnce(text: string): Promise<void> {
  await writeOut(`${text}\n`);
}

/**
 * Writes text to stdout, and returns when it is written: to the buffer of a pipe, or to the cache of a file.
 * @throws SdsError `failed` if it could not be written
 */
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

/** Syncs what was written to the disk, if stdout is a file. @throws SdsError `failed` */
export function syncStdout(): void {
  try {
    fsyncSync(1);
  } catch (thrown) {
    // A pipe or a terminal has no disk.
    if (!["EINVAL", "ENOTSUP", "EROFS"].includes(codeOf(thrown))) throw cannotWrite(messageOf(thrown));
  }
}

function cannotWrite(why: string): SdsError {
  return new SdsError("failed", `cannot write to stdout: ${why}`);
}

/**
 * Prints a value as JSON. Characters in it that would control a terminal, or change the direction of its text, are
 * written as escapes, which JSON allows everywhere in a string.
 * @param indent how many spaces each level is indented by; without it, all is on one line
 */
export function printJson(value: unknown, indent?: number): void {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  printLine(JSON.stringify(value, null, indent).replaceAll(CONTROLS, escaped));
}

/** Prints a secret alone, or as JSON. */
export function printSecret(secret: string, json: boolean | undefined): void {
  if (json) printJson({ secret });
  else printLine(secret);
}

/** Prints a message to stderr. Parts of it come from arguments and files, and must not control the terminal. */
export function tell(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

export function warn(warnings: readonly string[]): void {
  for (const warning of warnings) tell(`sds: warning: ${warning}`);
}

/**
 * Prints a list: with `--json` the entries as they are, else a table, or a message if the list is empty.
 * @param columns the text of an entry for each heading
 */
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

/** Prints a table, each column as wide as its longest text. @param columns the text of an entry for each heading */
export function printTable<T>(entries: readonly T[], columns: Record<string, (entry: T) => string>): void {
  const headings = Object.keys(columns);
  const rows = entries.map((entry) => Object.values(columns).map((text) => text(entry)));
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  printLine(styleText("bold", line(headings), { stream: process.stdout }));
  for (const row of rows) printLine(printable(line(row)));
}

/** Prints names and values, one pair on each line. */
export function printFields(fields: Record<string, string>): void {
  const width = Math.max(...Object.keys(fields).map((name) => name.length));
  for (const [name, value] of Object.entries(fields)) printLine(printable(`${name.padEnd(width)}  ${value}`));
}
