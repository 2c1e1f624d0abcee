import { styleText } from "node:util";

/** Data goes to stdout and nothing else does. */
export function printLine(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function printJson(value: unknown): void {
  printLine(JSON.stringify(value));
}

/** Messages go to stderr. */
export function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** A table with a heading for people, in columns as wide as they need to be. */
export function printTable(headings: string[], rows: string[][]): void {
  const widths = headings.map((heading, column) => Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  printLine(styleText("bold", line(headings), { stream: process.stdout }));
  for (const row of rows) printLine(line(row));
}

/** Names and values of one thing, a line each. */
export function printFields(fields: Record<string, string>): void {
  const width = Math.max(...Object.keys(fields).map((name) => name.length));
  for (const [name, value] of Object.entries(fields)) printLine(`${name.padEnd(width)}  ${value}`);
}
