import { SdsError } from "../../domain/error.ts";
import { type CopyTarget, describeRow, notEmpty } from "../copy/copy.ts";
import {
  COPIED_TABLES,
  type ColumnKind,
  type CopiedTable,
  filledTablesText,
  placeIn,
  UNFINISHED_COPY,
} from "../copy/tables.ts";
import type { CopiedRow } from "../copy/tally.ts";
import { nameOf } from "./address.ts";
import { LOCKED, lockWriters, postgresSide, TYPES } from "./copy-side.ts";
import { type CopySourceOptions, prepare } from "./copy-source.ts";
import { beginLong, type LongTransaction } from "./long-transaction.ts";

/**
 * Begins a copy. First commits a marker for an unfinished copy. Then a single transaction copies all rows and removes
 * the marker.
 * @throws SdsError `conflict` for a database with rows, `failed` if it is in use or has a different schema
 */
export async function openPostgresTarget(options: CopySourceOptions): Promise<CopyTarget> {
  const { address } = options;
  const name = nameOf(address);
  await prepare(options, true);
  const begin = async () => {
    const tx = await beginLong(address, "ISOLATION LEVEL READ COMMITTED");
    try {
      await lockWriters(tx, name, "EXCLUSIVE");
      const [filled] = await tx.all<{ name: string }>(`${filledTablesText("postgres")} LIMIT 1`);
      if (filled !== undefined) throw notEmpty(name, filled.name);
      return tx;
    } catch (thrown) {
      await tx.close();
      throw thrown;
    }
  };
  const marking = await begin();
  try {
    await marking.all("INSERT INTO meta (name, value) VALUES ($1::text, '') ON CONFLICT DO NOTHING", [UNFINISHED_COPY]);
    await marking.commit();
  } finally {
    await marking.close();
  }
  return targetIn(await begin(), name);
}

async function targetIn(tx: LongTransaction, name: string): Promise<CopyTarget> {
  const texts = new Map(COPIED_TABLES.map((table) => [table, writeText(table)]));
  // A node may have run on the empty database, and stored the fingerprint of its own key. Removes this fingerprint.
  const [meta] = COPIED_TABLES;
  await tx.all(`DELETE FROM meta WHERE ${meta?.where}`);
  // An interrupted copy leaves dead rows; TRUNCATE removes them.
  await tx.all(`TRUNCATE ${LOCKED.filter((table) => table !== "meta").join(", ")}`);
  return {
    ...postgresSide(tx, name),

    async write(table, rows) {
      checkTexts(table, rows, name);
      const columns = placeIn("postgres", table).written.map(({ index }) => rows.map((row) => row[index] ?? null));
      await tx.all(texts.get(table) ?? "", columns);
    },

    async setLastNumber(table, last) {
      const { stored } = placeIn("postgres", table);
      await tx.all("SELECT setval(pg_get_serial_sequence($1::text, $2::text), $3::bigint, $4::boolean)", [
        stored,
        table.numbered ?? "",
        Math.max(last, 1),
        last > 0,
      ]);
    },

    async finish() {
      // Without ANALYZE the planner has no statistics of the new rows for a minute.
      const tables = new Set(COPIED_TABLES.map((table) => placeIn("postgres", table).stored));
      await tx.all(`ANALYZE ${[...tables].join(", ")}`);
      await tx.all("DELETE FROM meta WHERE name = $1::text", [UNFINISHED_COPY]);
      await tx.commit();
    },

    close: tx.close,
  };
}

/** Returns an INSERT or UPDATE of many rows, with an array for each column. */
function writeText(table: CopiedTable): string {
  const { stored, isPart, written, filled } = placeIn("postgres", table);
  const columns = written.map(({ column }) => column);
  const arrays = columns.map((column, index) => `$${index + 1}::${TYPES[kindOf(table, column)]}[]`);
  const rows = `unnest(${arrays.join(", ")}) AS given (${columns.join(", ")})`;
  if (!isPart) {
    const names = [...columns, ...filled.map(({ column }) => column)];
    const values = [...columns, ...filled.map(({ value }) => value)];
    return `INSERT INTO ${stored} (${names.join(", ")}) SELECT ${values.join(", ")} FROM ${rows}`;
  }
  const changed = columns
    .filter((column) => !table.key.includes(column))
    .map((column) => `${column} = given.${column}`);
  const same = table.key.map((column) => `${stored}.${column} = given.${column}`);
  return `UPDATE ${stored} SET ${changed.join(", ")} FROM ${rows} WHERE ${same.join(" AND ")}`;
}

function kindOf({ columns }: CopiedTable, column: string): ColumnKind {
  return columns[column] ?? "text";
}

/** Checks texts before they are written. @throws SdsError `failed` for a text that PostgreSQL cannot store */
function checkTexts(table: CopiedTable, rows: readonly CopiedRow[], name: string): void {
  const names = Object.keys(table.columns);
  for (const row of rows) {
    const place = row.findIndex((value) => typeof value === "string" && value.includes("\0"));
    if (place !== -1)
      throw new SdsError(
        "failed",
        `${describeRow(table, row)} has the character U+0000 in ${names[place]}, which PostgreSQL cannot store: ` +
          `change it in the source; ${name} has an unfinished copy now`,
      );
  }
}
