import { styleText } from "node:util";

/** Prints data to stdout. Nothing else is written there. */
export function printLine(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function printJson(value: unknown): void {
  printLine(JSON.stringify(value));
}

/** Prints a secret alone, or as JSON. */
export function printSecret(secret: string, { json = false }: { json?: boolean }): void {
  if (json) printJson({ secret });
  else printLine(secret);
}

/** Prints a message to stderr. */
export function tell(text: string): void {
  process.stderr.write(`${text}\n`);
}

export function warn(warnings: readonly string[]): void {
  for (const warning of warnings) tell(`sds: warning: ${warning}`);
}

/** Prints a table with headings, each column as wide as its longest value. */
export function printTable(headings: string[], rows: string[][]): void {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  printLine(styleText("bold", line(headings), { stream: process.stdout }));
  for (const row of rows) printLine(line(row));
}

/** Prints names and values, one pair on each line. */
export function printFields(fields: Record<string, string>): void {
  const width = Math.max(...Object.keys(fields).map((name) => name.length));
  for (const [name, value] of Object.entries(fields)) printLine(`${name.padEnd(width)}  ${value}`);
}
