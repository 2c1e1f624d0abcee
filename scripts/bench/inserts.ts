/**
 * Measures the lowest possible cost of an import: inserts the rows of `writtenRows` into the same tables of another
 * database, with prepared statements and the pragmas of sds.
 * `bun scripts/bench/inserts.ts ROWS_DATABASE DATABASE CHANGES_PER_COMMIT`
 */
import { Database, type SQLQueryBindings } from "bun:sqlite";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { UPGRADE } from "../../test/support/open-store.ts";
import { WRITTEN_TABLES } from "./shops.ts";

const [source = "", target = "", changesPerCommit = ""] = process.argv.slice(2);
const from = new Database(source, { readonly: true });
const into = openDatabase(target, 30_000, UPGRADE);
const step = Number(changesPerCommit);

const tables = WRITTEN_TABLES.map((table) => {
  const read = from.prepare<unknown, number[]>(`SELECT * FROM ${table} WHERE change_number > ? AND change_number <= ?`);
  const insert = into.prepare<unknown, SQLQueryBindings[]>(
    `INSERT INTO ${table} VALUES (${read.columnNames.map(() => "?")})`,
  );
  return { read, insert };
});
const last = from.query<{ last: number }, []>("SELECT max(change_number) AS last FROM subscriptions").get()?.last ?? 0;
for (let written = 0; written <= last; written += step) {
  into.run("BEGIN IMMEDIATE");
  for (const { read, insert } of tables) {
    for (const row of read.values(written, written + step) as SQLQueryBindings[][]) insert.run(...row);
  }
  into.run("COMMIT");
}
into.close();
