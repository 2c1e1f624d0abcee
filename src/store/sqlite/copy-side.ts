import type { Database } from "bun:sqlite";
import { SdsError } from "../../domain/error.ts";
import { nextTurn } from "../../lib/waits.ts";
import { BATCH_BYTES, BATCH_ROWS, type CopySide, describeRow } from "../copy/copy.ts";
import { type ColumnKind, type CopiedTable, placeIn } from "../copy/tables.ts";
import { type CopiedRow, sizeOf, type Value } from "../copy/tally.ts";
import { sealedWith } from "./database.ts";

type Stored = string | number | Uint8Array | null;

/** Returns the operations that read rows, for source and target. No other process may use the database. */
export function sqliteSide(db: Database, name: string): Omit<CopySide, "close"> {
  return {
    name,

    async count(table) {
      return db.query<{ n: number }, []>(`SELECT count(*) AS n ${fromText(table)}`).get()?.n ?? 0;
    },

    async *batches(table) {
      const statement = db.prepare<Record<string, Stored>, []>(rowsText(table));
      try {
        let batch: CopiedRow[] = [];
        let bytes = 0;
        for (const stored of statement.iterate()) {
          const row = rowOf(table, stored, name);
          batch.push(row);
          bytes += sizeOf(row);
          if (batch.length < BATCH_ROWS && bytes < BATCH_BYTES) continue;
          yield batch;
          batch = [];
          bytes = 0;
          // Lets the target write the previous batch now.
          await nextTurn();
        }
        if (batch.length > 0) yield batch;
      } finally {
        statement.finalize();
      }
      return undefined;
    },

    async lastNumber(table) {
      const { stored } = placeIn("sqlite", table);
      const found = db.query<{ seq: number }, [string]>("SELECT seq FROM sqlite_sequence WHERE name = ?").get(stored);
      return found?.seq ?? 0;
    },

    async sealedWith() {
      return sealedWith(db);
    },
  };
}

function fromText(table: CopiedTable): string {
  const { stored } = placeIn("sqlite", table);
  return `FROM ${stored}${table.where === undefined ? "" : ` WHERE ${table.where}`}`;
}

/** Returns a query for all rows of a table, in the order in which SQLite reads fastest. */
export function rowsText(table: CopiedTable): string {
  const { expression, order } = placeIn("sqlite", table);
  const columns = Object.keys(table.columns).map((column) => `${expression(column)} AS ${column}`);
  return `SELECT ${columns.join(", ")} ${fromText(table)} ORDER BY ${order.map(expression).join(", ")}`;
}

/** Converts a stored row to the common form. @throws SdsError `failed` for a number beyond 2^53 */
function rowOf(table: CopiedTable, stored: Record<string, Stored>, name: string): CopiedRow {
  const row = Object.entries(table.columns).map(([column, kind]) => commonValue(stored[column] ?? null, kind));
  if (row.some((value) => typeof value === "number" && !Number.isSafeInteger(value)))
    throw new SdsError("failed", `${describeRow(table, row)} in ${name} has a number above 2^53`);
  return row;
}

function commonValue(value: Stored, kind: ColumnKind): Value {
  return kind === "flag" && value !== null ? value === 1 : value;
}
