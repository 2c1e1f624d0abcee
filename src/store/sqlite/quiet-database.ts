import type { Database, SQLQueryBindings, Statement } from "bun:sqlite";
import type { SQL } from "drizzle-orm";
import { SQLiteSyncDialect } from "drizzle-orm/sqlite-core/dialect";
import type { QuietDatabase, StatementValue, TransactionWork } from "../quiet/quiet-database.ts";

/** Puts a plus before parameters. Otherwise SQLite may prepare a statement at each run (see `openDatabase`). */
class SqliteDialect extends SQLiteSyncDialect {
  override escapeParam(): string {
    return "+?";
  }
}

/**
 * Makes the database for the stores of quiet/. Each distinct statement stays prepared. Values are parameters, so the
 * number of statements is limited.
 */
export function quietDatabase(db: Database): QuietDatabase {
  const dialect = new SqliteDialect();
  const prepared = new Map<string, Statement<unknown, SQLQueryBindings[]>>();

  function compile(statement: SQL): [Statement<unknown, SQLQueryBindings[]>, SQLQueryBindings[]] {
    const { sql: text, params } = dialect.sqlToQuery(statement);
    const known = prepared.get(text) ?? db.prepare<unknown, SQLQueryBindings[]>(text);
    prepared.set(text, known);
    return [known, params as SQLQueryBindings[]];
  }

  function all(statement: SQL): unknown[] {
    const [known, params] = compile(statement);
    return known.all(...params);
  }

  function run(statement: SQL): number {
    const [known, params] = compile(statement);
    return known.run(...params).changes;
  }

  function finish<T>(work: TransactionWork<T>): T {
    let step = work.next();
    while (step.done !== true) {
      const { statement, wants } = step.value;
      step = work.next(wants === "rows" ? all(statement) : run(statement));
    }
    return step.value;
  }

  return {
    engine: "sqlite",
    all: async <T>(statement: SQL) => all(statement) as T[],
    get: async <T>(statement: SQL) => all(statement)[0] as T | undefined,
    run: async (statement) => run(statement),

    prepare<T>(statement: SQL) {
      const [known] = compile(statement);
      return (...values: StatementValue[]) => (known.get(...values) ?? undefined) as T | undefined;
    },

    async transaction(work) {
      return db.transaction(() => finish(work())).immediate();
    },
  };
}
