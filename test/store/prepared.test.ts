import { Database, type SQLQueryBindings } from "bun:sqlite";
import { expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { everyOperation } from "../conformance/every-operation.ts";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { openStoreIn } from "../support/open-store.ts";

/** SQLite reads this comment each time it prepares a statement. */
const LONG_COMMENT = `/*${"-".repeat(500_000)}*/`;

/** The time of the fastest of ten runs. */
function fastestMs(run: () => unknown): number {
  const times = Array.from({ length: 10 }, () => {
    const start = performance.now();
    run();
    return performance.now() - start;
  });
  return Math.min(...times);
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
  const prepareMs = fastestMs(() => db.prepare(`SELECT ${LONG_COMMENT} 1`).finalize());
  const slow = prepared.filter((sql) => {
    const statement = db.prepare<unknown, SQLQueryBindings[]>(sql.replace(/^\w+/, `$& ${LONG_COMMENT}`));
    const parameters = Array<number>(statement.paramsCount).fill(1);
    const runMs = fastestMs(() => {
      db.run("BEGIN");
      try {
        statement.all(...parameters);
      } catch {
        // Some statements refuse these values, but only after SQLite prepared the statement. We measure the preparing.
      }
      db.run("ROLLBACK");
    });
    return runMs > prepareMs / 5;
  });
  expect(slow).toEqual([]);
});
