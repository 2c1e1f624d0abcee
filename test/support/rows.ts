import { Database } from "bun:sqlite";
import { join } from "node:path";
import { type Row, sorted, type Table } from "./tables.ts";

/** Counts a shop's rows in a table of the SQLite database in a data folder. */
export function countRows(folder: string, table: Table, shopId: number): number {
  return queryRows(folder, `SELECT 1 FROM ${table} WHERE shop_id = ${shopId}`).length;
}

/** All rows of a table of the SQLite database in a data folder, in the order and form that tables.ts describes. */
export function readRows(folder: string, table: Table): Row[] {
  return sorted(table, queryRows(folder, `SELECT * FROM ${table}`));
}

function queryRows(folder: string, statement: string): Row[] {
  const db = new Database(join(folder, "sds.db"), { readonly: true });
  try {
    // The first program after a kill locks the database for a moment.
    db.run("PRAGMA busy_timeout = 5000");
    return db.query<Row, []>(statement).all();
  } finally {
    db.close();
  }
}
