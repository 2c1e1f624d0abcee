import { type Placeholder, type SQL, sql as template } from "drizzle-orm";
import type { Awaitable } from "../../lib/waits.ts";

/** A value in a statement. In PostgreSQL null has no type: use null only where a column decides the type. */
export type StatementValue = string | number | boolean | null | Uint8Array;

/** drizzle's template. It omits undefined and writes an array as a list, so this type refuses undefined and arrays. */
export const sql: (text: TemplateStringsArray, ...values: (StatementValue | SQL | Placeholder)[]) => SQL = template;

type ValueType = "text" | "bigint" | "boolean" | "bytea";

/** Marks a parameter of a prepared statement. @param type the value's type in PostgreSQL */
export function parameter(type: ValueType): Placeholder {
  return template.placeholder(type);
}

/**
 * The database of either engine, for the stores of this folder. SQLite returns a boolean as 0 or 1. Everything else is
 * the same in both engines.
 */
export interface QuietDatabase {
  engine: "sqlite" | "postgres";
  all<T>(statement: SQL): Promise<T[]>;
  /** Returns the first row. */
  get<T>(statement: SQL): Promise<T | undefined>;
  /** @returns the number of changed rows */
  run(statement: SQL): Promise<number>;
  /**
   * Prepares a statement that runs for each request.
   * @returns a function that takes the parameters in their order, and returns the first row. For SQLite it returns the
   *   row without a promise.
   */
  prepare<T>(statement: SQL): (...values: StatementValue[]) => Awaitable<T | undefined>;
  /**
   * Runs a transaction. PostgreSQL may retry it, so `work` must have no effect outside of the transaction. `work`
   * cannot catch an error of a statement.
   */
  transaction<T>(work: () => TransactionWork<T>): Promise<T>;
}

interface TransactionStep {
  statement: SQL;
  wants: "rows" | "count";
}

/**
 * A transaction as a generator. It yields each statement and receives the result. PostgreSQL awaits each result. SQLite
 * runs the generator synchronously: an asynchronous transaction would commit its rows even if it throws.
 */
export type TransactionWork<T> = Generator<TransactionStep, T, unknown>;

/** Runs statements of a transaction: `yield* tx.get(…)`. */
export const tx = {
  *all<T>(statement: SQL): TransactionWork<T[]> {
    return (yield { statement, wants: "rows" }) as T[];
  },
  *get<T>(statement: SQL): TransactionWork<T | undefined> {
    return (yield* tx.all<T>(statement))[0];
  },
  *run(statement: SQL): TransactionWork<number> {
    return (yield { statement, wants: "count" }) as number;
  },
};

/** Returns the SQL for the engine of `db`, where the engines differ. */
export function either(db: QuietDatabase, texts: Record<QuietDatabase["engine"], SQL>): SQL {
  return texts[db.engine];
}

/** Returns SQL that locks the rows of a SELECT. SQLite needs no locks: one transaction writes at a time. */
export function lockFor(db: QuietDatabase, strength: "KEY SHARE" | "NO KEY UPDATE" | "UPDATE"): SQL {
  return either(db, { sqlite: sql``, postgres: template.raw(`FOR ${strength}`) });
}

/**
 * Returns SQL of a table with these rows. All rows are one parameter, so the text is the same for any number of rows.
 * @param columns types of the columns, by name. The properties of each row have the same names.
 */
export function tableOf<C extends string>(
  db: QuietDatabase,
  name: string,
  columns: Record<C, "text" | "bigint">,
  rows: readonly Record<C, string | number | null>[],
): SQL {
  const json = JSON.stringify(rows);
  const entries = Object.entries(columns);
  const typed = entries.map(([column, type]) => `${column} ${type}`).join(", ");
  const read = entries.map(([column]) => `value ->> '${column}' AS ${column}`).join(", ");
  return either(db, {
    sqlite: sql`(SELECT ${template.raw(read)} FROM jsonb_each(${json})) AS ${template.raw(name)}`,
    postgres: sql`json_to_recordset(${json}::json) AS ${template.raw(`${name} (${typed})`)}`,
  });
}

/** Returns SQL of a table of these numbers, with the one column `number`. */
export function numberTable(db: QuietDatabase, numbers: readonly number[]): SQL {
  return tableOf(
    db,
    "numbers",
    { number: "bigint" },
    numbers.map((number) => ({ number })),
  );
}
