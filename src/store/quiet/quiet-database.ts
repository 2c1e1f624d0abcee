import { type Placeholder, type SQL, sql as template } from "drizzle-orm";
import type { Awaitable } from "../../lib/waits.ts";

/** A value of a statement. Null has no type in PostgreSQL: give it only where a column decides the type. */
export type StatementValue = string | number | boolean | null | Uint8Array;

/** drizzle's template with a stricter type: drizzle would leave out undefined, and write an array as a list. */
export const sql: (text: TemplateStringsArray, ...values: (StatementValue | SQL | Placeholder)[]) => SQL = template;

type ValueType = "text" | "bigint" | "boolean" | "bytea";

/** A place in a prepared statement for a value of a PostgreSQL type. */
export function parameter(type: ValueType): Placeholder {
  return template.placeholder(type);
}

/** Either engine, for the stores of this folder. SQLite returns a boolean as 0 or 1. All else is equal in both. */
export interface QuietDatabase {
  engine: "sqlite" | "postgres";
  all<T>(statement: SQL): Promise<T[]>;
  /** The first row. */
  get<T>(statement: SQL): Promise<T | undefined>;
  /** @returns how many rows it changed */
  run(statement: SQL): Promise<number>;
  /**
   * Prepares a statement that each request runs.
   * @returns a function of the parameters, in their order, that returns the first row: in SQLite without a promise
   */
  prepare<T>(statement: SQL): (...values: StatementValue[]) => Awaitable<T | undefined>;
  /**
   * Runs a transaction. PostgreSQL may retry it, so `work` must have no effect elsewhere. `work` cannot catch an error
   * of a statement.
   */
  transaction<T>(work: () => TransactionWork<T>): Promise<T>;
}

interface TransactionStep {
  statement: SQL;
  wants: "rows" | "count";
}

/**
 * A transaction as a generator: it yields each statement and receives the result. SQLite runs it synchronously, because
 * an asynchronous transaction commits its rows even if it throws. PostgreSQL awaits each result.
 */
export type TransactionWork<T> = Generator<TransactionStep, T, unknown>;

/** The statements of a transaction: `yield* tx.get(…)`. */
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

/** Chooses the SQL of the engine, where the two differ. */
export function either(db: QuietDatabase, texts: Record<QuietDatabase["engine"], SQL>): SQL {
  return texts[db.engine];
}

/** Locks the rows of a SELECT. SQLite needs no such lock: only one of its transactions writes at a time. */
export function lockFor(db: QuietDatabase, strength: "KEY SHARE" | "NO KEY UPDATE" | "UPDATE"): SQL {
  return either(db, { sqlite: sql``, postgres: template.raw(`FOR ${strength}`) });
}

/**
 * Turns rows into a table for a statement. All rows are one parameter, so the text is the same for any number of rows.
 * @param columns names and types of the columns, the same names as in each row
 */
export function tableOf<C extends string>(
  db: QuietDatabase,
  name: string,
  columns: Record<C, "text" | "bigint">,
  rows: readonly Record<C, string | number>[],
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

/** The same for one column `number`. */
export function numberTable(db: QuietDatabase, numbers: readonly number[]): SQL {
  return tableOf(
    db,
    "numbers",
    { number: "bigint" },
    numbers.map((number) => ({ number })),
  );
}
