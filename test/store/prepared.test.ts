import { Database, type SQLQueryBindings } from "bun:sqlite";
import { expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { everyOperation } from "../conformance/every-operation.ts";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { openStoreIn } from "../support/open-store.ts";

/** SQLite reads this comment each time it prepares a statement. */
const LONG_COMMENT = `/*${"-".repeat(500_000)}*/`;

/** The times of the fastest of ten runs of each function, in milliseconds. The functions run in turn. */
function fastestMs(...functions: (() => unknown)[]): number[] {
  const fastest = functions.map(() => Number.POSITIVE_INFINITY);
  for (let n = 0; n < 10; n += 1)
    for (const [index, run] of functions.entries()) {
      const start = performance.now();
      run();
      fastest[index] = Math.min(fastest[index] ?? 0, performance.now() - start);
    }
  return fastest;
}

/** Prepares a statement. Returns a function that runs it with the value 1 for each parameter. */
function runner(db: Database, sql: string): () => void {
  const statement = db.prepare<unknown, SQLQueryBindings[]>(sql);
  const parameters = Array<number>(statement.paramsCount).fill(1);
  return () => {
    db.run("BEGIN");
    try {
      statement.all(...parameters);
    } catch {
      // Some statements refuse these values, but only after SQLite prepared the statement. We measure the preparing.
    }
    db.run("ROLLBACK");
  };
}

test("SQLite prepares none of the store's prepared statements again at each run (openDatabase explains why it could)", async () => {
  const folder = temporaryFolder();
  const spy = spyOn(Database.prototype, "prepare");
  afterTest(() => spy.mockRestore());
  // Many statements are prepared at their first run.
  await everyOperation(await openStoreIn(folder));
  const calls = new Set(spy.mock.calls.map(([sql]) => sql));
  const prepared = [...calls].filter((sql) => /^(SELECT|INSERT|UPDATE|DELETE)/i.test(sql));
  spy.mockRestore();
  expect(prepared.length).toBeGreaterThan(80);

  using db = new Database(join(folder, "sds.db"));
  const [prepareMs = 0] = fastestMs(() => db.prepare(`SELECT ${LONG_COMMENT} 1`).finalize());
  const slow = prepared.filter((sql) => {
    const commented = sql.replace(/^\w+/, `$& ${LONG_COMMENT}`);
    const [commentedMs = 0, plainMs = 0] = fastestMs(runner(db, commented), runner(db, sql));
    return commentedMs - plainMs > prepareMs / 5;
  });
  expect(slow).toEqual([]);
});
