import type { MovedRow, MovedValue } from "../port/shop-moves.ts";
import { COPIED_TABLES, type CopiedTable } from "./tables.ts";

/**
 * Tables whose rows stay behind. An unfinished load begins again in the other database, so its staged orders are not
 * needed there. Sessions of the settings page end, because the other database is served at another address.
 */
const LEFT_BEHIND = [
  "meta",
  "order_stages",
  "staged_orders",
  "staged_order_lines",
  "admin_links",
  "admin_sessions",
  "admin_forms",
  "shop_moves",
  "shop_removals",
];

/** Columns that get new numbers in the other database. Each column maps to the table whose row numbers it contains. */
const RENUMBERED: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  deliveries: { number: "deliveries" },
  attempts: { delivery: "deliveries" },
  inbox: { number: "inbox" },
  audit: { number: "audit" },
  alert_addresses: { number: "alert_addresses" },
  alert_notices: { number: "alert_notices", address: "alert_addresses" },
};

/**
 * Tables whose rows belong to rows of another table, the owner. A move copies such rows together with their owners,
 * because SQLite can find such rows only through their owners. Each column maps to a column of the owner.
 */
const OWNERS: Readonly<Record<string, MovedTable["owner"]>> = {
  attempts: { table: "deliveries", columns: { delivery: "number" } },
  subscription_fields: { table: "subscriptions", columns: { started_at: "started_at", id: "id" } },
};

/** Columns about the current work of a process. They arrive as NULL in the other database. */
const LEFT_EMPTY: Readonly<Record<string, readonly string[]>> = {
  connections: ["renewing", "renewing_until"],
  syncs: ["run", "holder", "held_until", "progress"],
};

/** A table from which a move copies the rows of a shop. */
export interface MovedTable {
  table: CopiedTable;
  /** The names of the columns, in the order of the values in a row. */
  columns: readonly string[];
  /** The column with the number of the shop. */
  shopColumn: "id" | "shop_id";
  /** Columns that sort and identify the rows of a shop, or of a kind. Empty if a shop has one row. */
  key: readonly string[];
  /** Values of the column `kind`. Rows of different kinds are read separately. */
  kinds: readonly string[] | undefined;
  /**
   * Returns the table whose row numbers a column contains. The move replaces them by that table's new numbers. Returns
   * undefined if the column's values stay as they are.
   */
  numbersOf: (column: string) => string | undefined;
  isLeftEmpty: (column: string) => boolean;
  /** The owner of this table (`OWNERS`); undefined if its rows belong to no other rows. */
  owner: { table: string; columns: Readonly<Record<string, string>> } | undefined;
}

/** Tables that give new numbers to the rows of a moved shop. */
export const NUMBERED_TABLES = [...new Set(Object.values(RENUMBERED).flatMap((columns) => Object.values(columns)))];

/**
 * The tables of a move, in the order in which they are read. The inbox comes before all tables that its items change.
 * If an item is processed meanwhile, the other database may process the item again, but no change is lost.
 */
export const MOVED_TABLES: readonly MovedTable[] = COPIED_TABLES.filter(({ name }) => !LEFT_BEHIND.includes(name))
  .map(movedTable)
  .toSorted((a, b) => rankOf(a) - rankOf(b));

function rankOf({ table: { name } }: MovedTable): number {
  return ["shops", "inbox"].includes(name) ? ["shops", "inbox"].indexOf(name) : 2;
}

function movedTable(table: CopiedTable): MovedTable {
  const { name } = table;
  const shopColumn = name === "shops" ? "id" : "shop_id";
  const key = table.key.filter((column) => column !== shopColumn);
  return {
    table,
    columns: Object.keys(table.columns),
    shopColumn,
    key,
    // Both engines have an index of a shop's deliveries by kind and number. SQLite has no such index by number alone.
    kinds: name === "deliveries" ? ["webhook", "trigger"] : undefined,
    numbersOf: (column) => RENUMBERED[name]?.[column],
    isLeftEmpty: (column) => LEFT_EMPTY[name]?.includes(column) === true,
    owner: OWNERS[name],
  };
}

export function movedTableOf(name: string): MovedTable {
  const found = MOVED_TABLES.find(({ table }) => table.name === name);
  if (found === undefined) throw new Error(`a move takes no table ${name}`);
  return found;
}

/** Lists the tables whose rows belong to the rows of a table. */
export function partsOf({ table }: MovedTable): MovedTable[] {
  return MOVED_TABLES.filter(({ owner }) => owner?.table === table.name);
}

/** Returns the value of a column in a moved row. */
export function valueIn(moved: MovedTable, row: MovedRow, column: string): MovedValue {
  return row[moved.columns.indexOf(column)] ?? null;
}
