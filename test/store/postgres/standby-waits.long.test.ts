import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import type { Database, DatabaseOptions } from "../../../src/store/postgres/database.ts";
import { failures } from "../../conformance/fixtures.ts";
import { eventually, LIMIT_MS } from "../../support/eventually.ts";
import { hasPgBouncer, startPgBouncer } from "../../support/pgbouncer.ts";
import { openDatabase } from "../../support/postgres-connections.ts";
import { type PostgresProcess, startPostgres } from "../../support/postgres-process.ts";
import { hasPostgres } from "../../support/postgres-server.ts";

const MAX_CONNECTIONS = 20;
const CONNECTIONS = 8;
/** Of 8 connections, 3 are only for reads. */
const MAX_WRITES = 5;
/** After a second without an answer, the program asks the server for the reason. The deadline leaves time for this. */
const DEADLINE_MS = 6_000;
const missing = {
  name: "StoreError",
  reason: "lost",
  message: expect.stringMatching(
    /^commits wait for a synchronous standby: start a server of synchronous_standby_names/,
  ),
};

const insert = (db: Database) => db.run("INSERT INTO written DEFAULT VALUES");
const insertInTransaction = (db: Database) => db.transaction((tx) => tx.run("INSERT INTO written DEFAULT VALUES"));

describe.skipIf(!hasPostgres())("commits that wait for a synchronous standby that is gone", () => {
  let server: PostgresProcess;
  let admin: SQL;

  beforeAll(async () => {
    server = await startPostgres({ max_connections: MAX_CONNECTIONS });
    admin = new SQL(server.url, { max: 1, idleTimeout: 0 });
    await admin.unsafe("CREATE TABLE written (id bigint GENERATED ALWAYS AS IDENTITY)");
  });
  afterAll(async () => {
    await admin.close();
    await server.stop();
  });
  beforeEach(() => setStandbys(""));

  async function setStandbys(names: string): Promise<void> {
    await admin.unsafe(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
    await admin.unsafe("SELECT pg_reload_conf()");
    await eventually(async () => {
      const [row] = await admin.unsafe("SELECT current_setting('synchronous_standby_names') AS names");
      return row.names === names;
    });
    if (names !== "") await eventually(doCommitsWait);
  }

  /**
   * Whether commits wait already. The server's checkpointer applies new standby names to all processes, but only some
   * time after the reload.
   */
  async function doCommitsWait(): Promise<boolean> {
    await using probe = new SQL(server.url, { max: 1 });
    const ended = probe.unsafe("INSERT INTO written DEFAULT VALUES").then(() => true);
    const cancelled = async () => {
      const [row] = await admin.unsafe(
        "SELECT count(pg_cancel_backend(pid))::int4 AS n FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
      );
      return row.n > 0;
    };
    let hasWaited = false;
    await eventually(async () => {
      hasWaited ||= await cancelled();
      return Promise.race([ended, false]);
    });
    return hasWaited;
  }

  async function countWaiting(): Promise<number> {
    const [row] = await admin.unsafe("SELECT count(*)::int4 AS n FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    return row.n;
  }

  const open = (url: string, options: Partial<DatabaseOptions> = {}) =>
    openDatabase(url, {
      connections: CONNECTIONS,
      deadlineMs: DEADLINE_MS,
      waitMs: LIMIT_MS,
      name: crypto.randomUUID(),
      ...options,
    });

  /**
   * Makes many writes at once with a standby that never answers.
   * @returns the maximum number of server processes that waited at once
   */
  async function writeInVain(db: Database): Promise<number> {
    await insert(db);
    await setStandbys("gone");
    let most = 0;
    const writes = Array.from({ length: 30 }, (_, n) => (n % 2 === 0 ? insert(db) : insertInTransaction(db)));
    const failed = failures(writes);
    await eventually(async () => {
      most = Math.max(most, await countWaiting());
      return most === MAX_WRITES;
    });
    // Reads have connections of their own.
    expect(await db.get<{ one: number }>("SELECT 1 AS one")).toEqual({ one: 1 });
    // Once the cause is known, further writes do not wait.
    await eventually(async () => {
      const began = performance.now();
      const [thrown] = await failures([insert(db)]);
      expect(thrown).toMatchObject(missing);
      return performance.now() - began < 100;
    });
    expect(await failed).toMatchObject(Array.from({ length: 30 }, () => missing));
    await eventually(async () => (await countWaiting()) === 0);
    return most;
  }

  test.each([false, true])(
    "are few, and are cancelled when they were given up (as behind a pooler: %p)",
    async (isPooled) => {
      const db = open(server.url, { isPooled });
      expect(await writeInVain(db)).toBe(MAX_WRITES);
      await setStandbys("");
      await insert(db);
    },
  );

  test.skipIf(!hasPgBouncer())("are few behind PgBouncer, and are cancelled there too", async () => {
    const url = await startPgBouncer(server.url, { pool_mode: "transaction", default_pool_size: "12" });
    expect(await writeInVain(open(url, { isPooled: true }))).toBe(MAX_WRITES);
  });

  test("are cancelled when the program stops", async () => {
    const db = open(server.url, { deadlineMs: 60_000 });
    await setStandbys("gone");
    const failed = failures([insert(db), insertInTransaction(db)]);
    await eventually(async () => (await countWaiting()) === 2);
    await db.close();
    expect(await failed).toMatchObject([{ reason: "lost" }, { reason: "lost" }]);
    await eventually(async () => (await countWaiting()) === 0);
  });

  test("succeed if the standby comes back, and a commit of somebody else goes on waiting", async () => {
    const [db, other] = [open(server.url, { deadlineMs: 60_000 }), open(server.url, { deadlineMs: 400 })];
    await setStandbys("gone");
    const written = insert(db);
    await eventually(async () => (await countWaiting()) === 1);
    expect(await failures([insert(other)])).toMatchObject([{ reason: "lost" }]);
    await eventually(async () => (await countWaiting()) === 1);
    expect(await failures([insert(other)])).toMatchObject([{ reason: "lost" }]);
    await eventually(async () => (await countWaiting()) === 1);
    await setStandbys("");
    expect(await written).toBe(1);
  });
});
