import { Database } from "bun:sqlite";
import { join } from "node:path";
import { type Row, sorted, type Table } from "./tables.ts";

/** All rows of a table of the SQLite database in a data folder, in the order and form that tables.ts describes. */
export function readRows(folder: string, table: Table): Row[] {
  const db = new Database(join(folder, "sds.db"), { readonly: true });
  try {
    // The first program after a kill locks the database for a moment.
    db.run("PRAGMA busy_timeout = 5000");
    return sorted(table, db.query<Row, []>(`SELECT * FROM ${table}`).all());
  } finally {
    db.close();
  }
}
