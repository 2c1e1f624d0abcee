import { Customer, Order, type Resource, Subscription } from "../../domain/resources.ts";

export const FORMATS = ["ndjson", "csv"] as const;
export type Format = (typeof FORMATS)[number];

/** How rows are written as text. */
export interface RowFormat {
  /** Comes before all rows; empty if nothing does. */
  header: string;
  /** A row as a line, its end included. */
  textOf: (row: Record<string, unknown>) => string;
}

interface CsvOptions {
  header: boolean;
  /** Whether text that a spreadsheet would run as a formula gets a `'` in front. */
  spreadsheet: boolean;
}

const FIELDS: Record<Resource, readonly string[]> = {
  subscriptions: Object.keys(Subscription.properties),
  customers: Object.keys(Customer.properties),
  orders: Object.keys(Order.properties),
};

export function createRowFormat(resource: Resource, format: Format, options: CsvOptions): RowFormat {
  return format === "csv" ? csv(FIELDS[resource], options) : ndjson();
}

function ndjson(): RowFormat {
  return { header: "", textOf: (row) => `${JSON.stringify(row)}\n` };
}

/**
 * CSV (RFC 4180) with one column for each field, in the order of the API. Null is empty, an empty text is `""`; arrays
 * are JSON. Fields that a newer server adds have no column, so that the columns stay as they are.
 */
function csv(fields: readonly string[], { header, spreadsheet }: CsvOptions): RowFormat {
  return {
    header: header ? `${fields.join(",")}\r\n` : "",
    textOf: (row) => `${fields.map((field) => cell(row[field], spreadsheet)).join(",")}\r\n`,
  };
}

/** What spreadsheets take for the start of a formula. */
const FORMULA = /^[=+\-@\t\r]/;

function cell(value: unknown, spreadsheet: boolean): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const safe = spreadsheet && FORMULA.test(text) ? `'${text}` : text;
  return safe === "" || /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
