import { Database, type SQLQueryBindings } from "bun:sqlite";
import { expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { openStore } from "../../src/store/open-store.ts";
import { randomBytes, temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";

/** To read so much takes SQLite a millisecond and more, each time that it prepares the statement. */
const LONG_COMMENT = `/*${"-".repeat(4_000_000)}*/`;
const MOST = 0.5;

/** Milliseconds of the quickest of ten runs. */
function quickest(run: () => unknown): number {
  const times = Array.from({ length: 10 }, () => {
    const start = performance.now();
    run();
    return performance.now() - start;
  });
  return Math.min(...times);
}

test("no statement that the store prepared is prepared anew by SQLite at each run (openDatabase says why one would be)", async () => {
  const folder = temporaryFolder();
  const spy = spyOn(Database.prototype, "prepare");
  afterTest(() => spy.mockRestore());
  const store = await openStore({ folder, masterKeyFile: join(folder, "master.key"), busyTimeoutMs: 2_000, random: randomBytes });
  const prepared = spy.mock.calls.map(([sql]) => sql).filter((sql) => /^(SELECT|INSERT|UPDATE|DELETE)/i.test(sql));
  spy.mockRestore();
  await store.close();
  expect(prepared.length).toBeGreaterThan(30);

  using db = new Database(join(folder, "sds.db"));
  const slow = prepared.filter((sql) => {
    const statement = db.prepare<unknown, SQLQueryBindings[]>(sql.replace(/^\w+/, `$& ${LONG_COMMENT}`));
    const parameters = Array<number>(statement.paramsCount).fill(1);
    return (
      quickest(() => {
        db.run("BEGIN");
        try {
          statement.all(...parameters);
        } catch {
          // Ones are not everywhere allowed, and a statement that was refused has run long enough to see.
        }
        db.run("ROLLBACK");
      }) > MOST
    );
  });
  expect(slow).toEqual([]);
});
