import { BATCH_BYTES, BATCH_ROWS, type CopySide } from "../copy/copy.ts";
import { COPIED_TABLES, type ColumnKind, type CopiedTable, NOT_COPIED, placeIn } from "../copy/tables.ts";
import type { CopiedRow, Value } from "../copy/tally.ts";
import { type LongTransaction, serverInUse } from "./long-transaction.ts";
import { isSomeNodeAlive } from "./nodes.ts";

export const TYPES: Record<ColumnKind, string> = { number: "bigint", text: "text", flag: "boolean", bytes: "bytea" };

/** Returns the operations that read rows. The source and the target of a copy share them. */
export function postgresSide(tx: LongTransaction, name: string): Omit<CopySide, "close"> {
  return {
    name,

    async count(table) {
      const { stored } = placeIn("postgres", table);
      const [found] = await tx.all<{ n: number }>(`SELECT count(*)::float8 AS n FROM ${stored}${whereText(table)}`);
      return found?.n ?? 0;
    },

    async *batches(table) {
      const { order } = placeIn("postgres", table);
      let last: Value[] = [];
      for (;;) {
        const found = await tx.all<Record<string, Value>>(batchText(table, last.length > 0), last as string[]);
        const end = found.at(-1);
        if (end === undefined) return undefined;
        yield found.map((row) => rowOf(table, row));
        last = order.map((column) => end[column] ?? null);
      }
    },

    async lastNumber(table) {
      const { stored } = placeIn("postgres", table);
      const [sequence] = await tx.all<{ name: string }>("SELECT pg_get_serial_sequence($1::text, $2::text) AS name", [
        stored,
        table.numbered ?? "",
      ]);
      const [found] = await tx.all<{ last: number }>(
        `SELECT (CASE WHEN is_called THEN last_value ELSE 0 END)::float8 AS last FROM ${sequence?.name}`,
      );
      return found?.last ?? 0;
    },

    async sealedWith() {
      const [found] = await tx.all<{ value: string }>("SELECT value FROM meta WHERE name = 'master_key'");
      return found?.value;
    },
  };
}

function whereText({ where }: CopiedTable): string {
  return where === undefined ? "" : ` WHERE ${where}`;
}

/**
 * Returns a query for the next rows in the order of an index, up to BATCH_ROWS and about BATCH_BYTES. Counting bytes is
 * cheap, because the server knows the length of a large value without reading the value.
 * @param isAfter whether the query begins after a key, and not with the first row
 */
function batchText(table: CopiedTable, isAfter: boolean): string {
  const { stored, order, expression } = placeIn("postgres", table);
  const kinds = Object.entries(table.columns);
  const sizes = kinds.flatMap(([column, kind]) =>
    kind === "text" || kind === "bytes" ? [`coalesce(octet_length(${column}), 0)`] : [],
  );
  const read = kinds.map(([column]) => `${expression(column)} AS ${column}`);
  const keys = order.map((column, index) => `$${index + 1}::${TYPES[table.columns[column] ?? "text"]}`);
  const conditions = [
    ...(table.where === undefined ? [] : [table.where]),
    ...(isAfter ? [`(${order.join(", ")}) > (${keys.join(", ")})`] : []),
  ];
  const values = kinds.map(([column, kind]) => (kind === "number" ? `${column}::float8 AS ${column}` : column));
  return `SELECT ${values.join(", ")} FROM (
      SELECT *, sum(size) OVER (ORDER BY ${order.join(", ")} ROWS UNBOUNDED PRECEDING) - size AS before FROM (
        SELECT ${read.join(", ")}, (${["16", ...sizes].join(" + ")})::bigint AS size
        FROM ${stored}${conditions.length === 0 ? "" : ` WHERE ${conditions.join(" AND ")}`}
        ORDER BY ${order.join(", ")} LIMIT ${BATCH_ROWS}
      ) AS next_rows
    ) AS sized WHERE before < ${BATCH_BYTES} ORDER BY ${order.map((column) => `sized.${column}`).join(", ")}`;
}

function rowOf(table: CopiedTable, found: Record<string, Value>): CopiedRow {
  return Object.keys(table.columns).map((column) => found[column] ?? null);
}

/** All tables of the engine, in lock order. */
export const LOCKED = [...new Set(COPIED_TABLES.map((table) => placeIn("postgres", table).stored)), ...NOT_COPIED];

/**
 * Locks out all writers until the transaction ends, even heartbeats of nodes. Call this before the first query, because
 * the first query takes the snapshot.
 * @throws SdsError `failed` if the database is in use
 */
export async function lockWriters(tx: LongTransaction, name: string, mode: "SHARE" | "EXCLUSIVE"): Promise<void> {
  await tx.all(`LOCK TABLE ${LOCKED.join(", ")} IN ${mode} MODE`);
  if (await isSomeNodeAlive(tx)) throw serverInUse(name);
}
