import { beforeAll, describe, expect, test } from "bun:test";
import { nextTurn } from "../../../src/lib/waits.ts";
import type { Database } from "../../../src/store/postgres/database.ts";
import { failures } from "../../conformance/fixtures.ts";
import { afterTest } from "../../support/cleanup.ts";
import { eventually } from "../../support/eventually.ts";
import { startFaultyProxy } from "../../support/faulty-proxy.ts";
import { countRunning, hasSession, NO_IDLE_LIMIT, openDatabase, withPort } from "../../support/postgres-connections.ts";
import { type PostgresProcess, startPostgres } from "../../support/postgres-process.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";

const lost = { name: "StoreError", reason: "lost" };

async function openTable(url: string): Promise<Database> {
  const db = openDatabase(url, { waitMs: 60_000 });
  await db.run("DROP TABLE IF EXISTS noted");
  await db.run("CREATE TABLE noted (value bigint)");
  return db;
}

const note = (db: Pick<Database, "run">, value: number) =>
  db.run("INSERT INTO noted (value) VALUES ($1::bigint)", [value]);

async function notedIn(db: Database): Promise<number[]> {
  const rows = await db.all<{ value: number }>("SELECT value::float8 AS value FROM noted ORDER BY noted.value");
  return rows.map(({ value }) => value);
}

describe.skipIf(!hasPostgres())("a PostgreSQL server that restarts", () => {
  let server: PostgresProcess;
  beforeAll(async () => {
    // The server syncs its writes, as by default, because acknowledged commits must survive a crash.
    server = await startPostgres({ fsync: "on", full_page_writes: "on" });
  });

  for (const signal of ["SIGINT", "SIGKILL"] as const) {
    test(`after ${signal} is used again: reads and transactions are repeated, nothing acknowledged is lost`, async () => {
      const db = await openTable(server.url);
      let runs = 0;
      let stop = false;
      afterTest(() => {
        stop = true;
      });
      const acknowledged: number[] = [];
      const unknown: number[] = [];
      const writer = async (first: number) => {
        for (let value = first; !stop; value += 10, await nextTurn()) {
          await note(db, value).then(
            () => acknowledged.push(value),
            () => unknown.push(value),
          );
        }
      };
      const writers = [1, 2].map(writer);
      const reading = db.get<{ one: number }>("SELECT 1 AS one, pg_sleep($1::float8)", [0.4]);
      const inTransaction = db.transaction(async (tx) => {
        runs += 1;
        await note(tx, 0);
        await tx.get("SELECT pg_sleep($1::float8)", [0.4]);
        return "committed";
      });
      await eventually(async () => (await countRunning(db, "SELECT")) >= 3 && acknowledged.length > 2);
      await server.stop(signal);
      await server.start();
      const acknowledgedBefore = acknowledged.length;
      expect(await reading).toMatchObject({ one: 1 });
      expect([await inTransaction, runs]).toEqual(["committed", 2]);
      await eventually(() => acknowledged.length > acknowledgedBefore + 4);
      stop = true;
      await Promise.all(writers);
      const noted = await notedIn(db);
      expect(noted.filter((value) => value === 0)).toHaveLength(1);
      expect(acknowledged.filter((value) => !noted.includes(value))).toEqual([]);
      // Each of the two writers has at most one write under way, so at most two results are unknown.
      expect(unknown.length).toBeLessThanOrEqual(2);
      // No repeated write was applied twice.
      expect(new Set(noted).size).toBe(noted.length);
      await db.close();
    });
  }

  test("that stays away is `lost` after the wait, and is used when it is back", async () => {
    const db = openDatabase(server.url, { waitMs: 300 });
    await db.get("SELECT 1 AS one");
    await server.stop();
    const failed = await failures([
      db.get("SELECT 1 AS one"),
      db.run("UPDATE noted SET value = $1::bigint", [1]),
      db.transaction((tx) => tx.get("SELECT 1 AS one")),
    ]);
    expect(failed).toMatchObject(failed.map(() => ({ ...lost })));
    await server.start();
    const write = () => db.run("CREATE TABLE IF NOT EXISTS noted (value bigint)");
    await eventually(() =>
      write().then(
        () => true,
        () => false,
      ),
    );
  });
});

describe.skipIf(!hasPostgres())("a connection that is cut", () => {
  async function behindProxy() {
    const url = await emptyDatabase();
    const proxy = await startFaultyProxy(Number(new URL(url).port));
    return { proxy, db: await openTable(withPort(url, proxy.port)) };
  }

  test("while it commits leaves the result unknown: `lost`, and no second run", async () => {
    const { proxy, db } = await behindProxy();
    let runs = 0;
    const [failed] = await failures([
      db.transaction(async (tx) => {
        runs += 1;
        await note(tx, runs);
        proxy.cutAtAnswer = "COMMIT\0";
      }),
    ]);
    expect(failed).toMatchObject(lost);
    expect([runs, await notedIn(db)]).toEqual([1, [1]]);
  });

  test("while it reads is harmless: the read is repeated", async () => {
    const { proxy, db } = await behindProxy();
    for (const text of ["SELECT 7 AS seven", "WITH one AS (SELECT 7 AS seven) SELECT seven FROM one"]) {
      proxy.cutAtAnswer = "SELECT 1\0";
      expect(await db.get<object>(text)).toEqual({ seven: 7 });
      expect(proxy.cutAtAnswer).toBeUndefined();
    }
  });

  test("while it writes also leaves the result unknown", async () => {
    const { proxy, db } = await behindProxy();
    proxy.cutAtAnswer = "SELECT 1\0";
    const written = db.get("WITH one AS (INSERT INTO noted VALUES ($1::bigint) RETURNING *) SELECT * FROM one", [0]);
    expect(await failures([written])).toMatchObject([lost]);
    await db.run("DELETE FROM noted");
    proxy.cutAtAnswer = "INSERT 0 1\0";
    expect(await failures([note(db, 1)])).toMatchObject([lost]);
    expect(await notedIn(db)).toEqual([1]);
  });

  test("before it commits is harmless: the transaction is repeated", async () => {
    const { proxy, db } = await behindProxy();
    let runs = 0;
    proxy.cutAtAnswer = "INSERT 0 1\0";
    const result = await db.transaction(async (tx) => {
      runs += 1;
      await note(tx, runs);
      return runs;
    });
    expect([result, await notedIn(db)]).toEqual([2, [2]]);
  });

  test("by the server, in the middle of a transaction, is harmless too", async () => {
    const { db } = await behindProxy();
    let runs = 0;
    await db.transaction(async (tx) => {
      runs += 1;
      await note(tx, runs);
      const { pid = 0 } = (await tx.get<{ pid: number }>("SELECT pg_backend_pid() AS pid")) ?? {};
      if (runs === 1) {
        await db.get("SELECT pg_terminate_backend($1::int)", [pid]);
        await eventually(async () => !(await hasSession(db, pid)));
      }
      await note(tx, runs);
    });
    expect([runs, await notedIn(db)]).toEqual([2, [2, 2]]);
  });

  test.each([
    ["before its last statement", true],
    ["before it commits", false],
  ])("of a transaction that was idle for too long %s is noticed, and it is run again", async (_name, isEarly) => {
    const url = await emptyDatabase();
    const db = await openTable(url);
    let runs = 0;
    await db.transaction(async (tx) => {
      runs += 1;
      await tx.run(runs === 1 ? "SET LOCAL idle_in_transaction_session_timeout = 50" : NO_IDLE_LIMIT);
      await note(tx, runs);
      const { pid = 0 } = (await tx.get<{ pid: number }>("SELECT pg_backend_pid() AS pid")) ?? {};
      if (runs === 1) await eventually(async () => !(await hasSession(db, pid)));
      if (isEarly) await note(tx, runs);
    });
    expect([runs, await notedIn(db)]).toEqual([2, isEarly ? [2, 2] : [2]]);
  });
});

describe.skipIf(!hasPostgres())("a machine that is so busy that each transaction is idle for too long", () => {
  /**
   * Runs a transaction that is idle for 700 ms in each of its first runs.
   * @returns the server's idle limit in each run, milliseconds
   */
  async function idleLimits(db: Database, idleRuns: number): Promise<number[]> {
    const limits: number[] = [];
    await db.transaction(async (tx) => {
      const found = await tx.get<{ ms: number }>(
        "SELECT setting::int4 AS ms FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'",
      );
      limits.push(found?.ms ?? 0);
      await note(tx, limits.length);
      if (limits.length > idleRuns) await tx.run(NO_IDLE_LIMIT);
      else Bun.sleepSync(700);
      await note(tx, limits.length);
    });
    expect(await notedIn(db)).toEqual([limits.length, limits.length]);
    return limits;
  }

  test("gets more idle time for a command's transaction that is run again", async () => {
    const url = await emptyDatabase();
    await openTable(url);
    expect(await idleLimits(openDatabase(url, { isPatient: true, waitMs: 60_000 }), 1)).toEqual([500, 1_000]);
  });

  test("gets none for a node, whose locks other nodes wait for", async () => {
    const url = await emptyDatabase();
    expect(await idleLimits(await openTable(url), 2)).toEqual([500, 500, 500]);
  });
});

describe.skipIf(!hasPostgres())("a server that only reads", () => {
  async function readOnly(isSo: boolean, url: string) {
    const name = new URL(url).pathname.slice(1);
    const setting = isSo ? "SET default_transaction_read_only = on" : "RESET default_transaction_read_only";
    // The setting applies only to new connections.
    await openDatabase(url).transaction((tx) =>
      tx.script(`SET TRANSACTION READ WRITE; ALTER DATABASE ${name} ${setting}`),
    );
  }

  test("gets new connections, as after a switch to another server, and the write is repeated", async () => {
    const url = await emptyDatabase();
    await openTable(url);
    await readOnly(true, url);
    // 1.5 s are too short to try each of the twelve old connections.
    const db = openDatabase(url, { connections: 12, waitMs: 1_500 });
    await Promise.all(Array.from({ length: 12 }, () => db.get("SELECT pg_sleep($1::float8)", [0.2])));
    await readOnly(false, url);
    let runs = 0;
    const written = await Promise.all([
      note(db, 1),
      db.transaction((tx) => {
        runs += 1;
        return note(tx, 2);
      }),
    ]);
    expect([written, runs, await notedIn(db)]).toEqual([[1, 1], 2, [1, 2]]);
  });

  test("is `lost` when it stays so, and can be read", async () => {
    const url = await emptyDatabase();
    await openTable(url);
    await readOnly(true, url);
    const db = openDatabase(url, { waitMs: 50 });
    expect(await failures([note(db, 2), db.transaction((tx) => note(tx, 3))])).toMatchObject([
      { ...lost },
      { ...lost },
    ]);
    expect(await notedIn(db)).toEqual([]);
    await readOnly(false, url);
  });
});
