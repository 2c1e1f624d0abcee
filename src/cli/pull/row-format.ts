import { Customer, Order, type Resource, Subscription } from "../../domain/resources.ts";

export const FORMATS = ["ndjson", "csv"] as const;
export type Format = (typeof FORMATS)[number];

export interface RowFormat {
  /** The text before all rows; can be empty. */
  header: string;
  /** Returns a row as a line that ends with a newline. */
  textOf: (row: Record<string, unknown>) => string;
}

export interface CsvOptions {
  header: boolean;
  /** Whether text that a spreadsheet would run as a formula gets a `'` in front. */
  spreadsheet: boolean;
  /** Whether the last column is `_sequence`. */
  sequence?: boolean;
  /** The keys of custom fields with a column; undefined if rows have no custom fields. */
  fieldKeys?: readonly string[] | undefined;
  /** Called for a custom field without a column. */
  onFieldWithoutColumn?: (key: string) => void;
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
 * array is JSON. A field that a newer server adds gets no column, because the columns must stay the same. The column
 * customFields has the custom fields without a column of their own, as JSON.
 */
function csv(fields: readonly string[], options: CsvOptions): RowFormat {
  const { header, spreadsheet, sequence, fieldKeys } = options;
  const own = sequence ? ["_sequence"] : [];
  const customColumns =
    fieldKeys === undefined ? [] : [...fieldKeys.map((key) => `customFields.${key}`), "customFields"];
  return {
    header: header ? `${[...fields, ...customColumns, ...own].join(",")}\r\n` : "",
    textOf(row) {
      const fieldsOf = (names: readonly string[]) => names.map((name) => row[name]);
      const values = [...fieldsOf(fields), ...customValues(row, options), ...fieldsOf(own)];
      return `${values.map((value) => cell(value, spreadsheet)).join(",")}\r\n`;
    },
  };
}

function customValues(row: Record<string, unknown>, { fieldKeys, onFieldWithoutColumn }: CsvOptions): unknown[] {
  if (fieldKeys === undefined) return [];
  const custom = new Map(Object.entries(row["customFields"] ?? {}));
  const others = [...custom].filter(([key]) => !fieldKeys.includes(key));
  for (const [key] of others) onFieldWithoutColumn?.(key);
  return [...fieldKeys.map((key) => custom.get(key)), others.length === 0 ? null : Object.fromEntries(others)];
}

/**
 * Adds the keys of a row's custom fields to the columns. Rows list their keys in the order of the fields, but a row may
 * lack some keys. So a new key is inserted behind its predecessor in the row.
 */
export function addFieldKeys(keys: string[], row: Record<string, unknown>): void {
  let behind = 0;
  for (const key of Object.keys(row["customFields"] ?? {})) {
    const known = keys.indexOf(key);
    if (known === -1) keys.splice(behind, 0, key);
    behind = (known === -1 ? behind : known) + 1;
  }
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
