import { Customer, Order, type Resource, Subscription } from "../../domain/resources.ts";

export const FORMATS = ["ndjson", "csv"] as const;
export type Format = (typeof FORMATS)[number];

export interface RowFormat {
  /** The text before all rows; can be empty. */
  header: string;
  /** A row as a line, with its line end. */
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
  return format === "csv"
    ? csv(FIELDS[resource], options)
    : { header: "", textOf: (row) => `${JSON.stringify(row)}\n` };
}

/**
 * CSV (RFC 4180) with one column for each field, in the order of the API. Null is empty, an empty text is `""`, an
 * array is JSON. A field that a newer server adds gets no column, because the columns must stay the same.
 */
function csv(fields: readonly string[], { header, spreadsheet }: CsvOptions): RowFormat {
  return {
    header: header ? `${fields.join(",")}\r\n` : "",
    textOf: (row) => `${fields.map((field) => cell(row[field], spreadsheet)).join(",")}\r\n`,
  };
}

/** Text that spreadsheets run as a formula. */
const FORMULA = /^[=+\-@\t\r]/;

function cell(value: unknown, spreadsheet: boolean): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const safe = spreadsheet && FORMULA.test(text) ? `'${text}` : text;
  return safe === "" || /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
