/**
 * Measures the lowest possible cost of an intake. Inserts the rows of an intake into the same tables of another
 * database, with the pragmas of sds. Each transaction has the rows of EVENTS_PER_COMMIT events. Prints the seconds.
 * `bun scripts/bench/commits.ts DATABASE_WITH_ROWS DATABASE EVENTS_PER_COMMIT`
 */
import { Database, type SQLQueryBindings } from "bun:sqlite";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { UPGRADE } from "../../test/support/open-store.ts";

const [source = "", target = "", eventsPerCommit = ""] = process.argv.slice(2);
const from = new Database(source, { readonly: true });
const into = openDatabase(target, 30_000, UPGRADE);

const tables = [
  "subscriptions ORDER BY change_number",
  "customers ORDER BY change_number",
  "deliveries ORDER BY number",
].map((ordered) => {
  const read = from.prepare<unknown, []>(`SELECT * FROM ${ordered}`);
  const insert = into.prepare<unknown, SQLQueryBindings[]>(
    `INSERT INTO ${ordered.split(" ", 1)} VALUES (${read.columnNames.map(() => "?")})`,
  );
  return { rows: read.values() as SQLQueryBindings[][], insert };
});
const events = tables.at(-1)?.rows.length ?? 0;
const commits = Math.ceil(events / Number(eventsPerCommit));
const count = into.prepare<unknown, [number]>("UPDATE shops SET change_count = change_count + ?");

const start = performance.now();
for (let done = 0; done < commits; done += 1) {
  into.run("BEGIN IMMEDIATE");
  for (const { rows, insert } of tables) {
    // The tables have different numbers of rows, because not every event has a customer. So each commit gets the same
    // share of each table.
    const share = (n: number) => Math.floor((n * rows.length) / commits);
    for (const row of rows.slice(share(done), share(done + 1))) insert.run(...row);
  }
  count.run(Number(eventsPerCommit));
  into.run("COMMIT");
}
process.stdout.write(`${(performance.now() - start) / 1_000}\n`);
into.close();
