import { is, Placeholder, type SQL } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core/dialect";
import type { QuietDatabase, StatementValue } from "../quiet/quiet-database.ts";
import type { Database, Parameter, Queries } from "./database.ts";

/** Casts each parameter by its type. So a statement always has the same parameter types, and is prepared only once. */
class PostgresDialect extends PgDialect {
  override escapeParam(index: number, value?: unknown): string {
    const type = typeOf(value);
    return `$${index + 1}${type === undefined ? "" : `::${type}`}`;
  }
}

function typeOf(value: unknown): string | undefined {
  if (is(value, Placeholder)) return value.name;
  if (value instanceof Uint8Array) return "bytea";
  return { string: "text", number: "bigint", boolean: "boolean" }[typeof value as string];
}

export function quietDatabase(db: Database): QuietDatabase {
  const dialect = new PostgresDialect();

  async function all<T>(queries: Queries, statement: SQL): Promise<T[]> {
    const { sql: text, params } = dialect.sqlToQuery(statement);
    return (await queries.all<Record<string, unknown>>(text, params as Parameter[])).map((row) => numbered<T>(row));
  }

  function run(queries: Queries, statement: SQL): Promise<number> {
    const { sql: text, params } = dialect.sqlToQuery(statement);
    return queries.run(text, params as Parameter[]);
  }

  return {
    engine: "postgres",
    all: (statement) => all(db, statement),
    get: async <T>(statement: SQL) => (await all<T>(db, statement))[0],
    run: (statement) => run(db, statement),

    prepare<T>(statement: SQL) {
      const { sql: text } = dialect.sqlToQuery(statement);
      return async (...values: StatementValue[]) => {
        const row = await db.get<Record<string, unknown>>(text, values);
        return row === undefined ? undefined : numbered<T>(row);
      };
    },

    transaction: (work) =>
      db.transaction(async (queries) => {
        const steps = work();
        let step = steps.next();
        while (step.done !== true) {
          const { statement, wants } = step.value;
          step = steps.next(await (wants === "rows" ? all(queries, statement) : run(queries, statement)));
        }
        return step.value;
      }),
  };
}

/** Converts bigints, which the driver returns for some columns, to numbers. All our numbers are below 2^53. */
function numbered<T>(row: Record<string, unknown>): T {
  for (const [column, value] of Object.entries(row)) if (typeof value === "bigint") row[column] = Number(value);
  return row as T;
}
