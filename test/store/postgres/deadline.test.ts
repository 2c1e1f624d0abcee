import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { nextTurn } from "../../../src/lib/waits.ts";
import type { Database } from "../../../src/store/postgres/database.ts";
import { createDeadline } from "../../../src/store/postgres/deadline.ts";
import type { TransactionQueries } from "../../../src/store/postgres/transaction.ts";
import { failures } from "../../conformance/fixtures.ts";
import { eventually, LIMIT_MS } from "../../support/eventually.ts";
import { startFaultyProxy } from "../../support/faulty-proxy.ts";
import { countRunning, openDatabase, withPort } from "../../support/postgres-connections.ts";
import { hasPostgres, postgresServer } from "../../support/postgres-server.ts";

const DEADLINE_MS = 400;
const lost = { name: "StoreError", reason: "lost", message: "the database did not answer within 0.4 s" };
const unhandled: unknown[] = [];
const note = (thrown: unknown) => unhandled.push(thrown);

beforeAll(() => {
  process.on("unhandledRejection", note);
});
afterAll(() => {
  process.off("unhandledRejection", note);
});

async function behindProxy(options = {}) {
  const { url } = await postgresServer();
  const proxy = await startFaultyProxy(Number(new URL(url).port));
  return { url, proxy, db: openDatabase(withPort(url, proxy.port), { deadlineMs: DEADLINE_MS, ...options }) };
}

/**
 * Uses this many connections at the same time, so that all of them are open afterwards. If the machine stalls, the server
 * ends transactions that are idle, and their retries can use fewer connections. Then all is done again.
 */
async function useAtOnce(db: Database, count: number): Promise<void> {
  let begun: number;
  do {
    const all = Promise.withResolvers<void>();
    begun = 0;
    const wait = async (tx: TransactionQueries) => {
      await tx.get("SELECT 1 AS one");
      begun += 1;
      if (begun === count) all.resolve();
      await all.promise;
    };
    await Promise.all(Array.from({ length: count }, () => db.transaction(wait)));
  } while (begun > count);
}

describe.skipIf(!hasPostgres())("PostgreSQL behind a network that swallows everything", () => {
  test("fails operations under way after the deadline, and then works on new connections", async () => {
    const { proxy, db } = await behindProxy();
    await useAtOnce(db, 4);
    proxy.isSwallowing = true;
    let late: unknown;
    const failed = await failures([
      db.get("SELECT 1 AS one"),
      db.run("UPDATE pg_class SET relname = relname WHERE relname = $1::text", ["none"]),
      db.transaction((tx) => tx.get("SELECT 2 AS two")),
      db.transaction(async (tx) => {
        try {
          await tx.get("SELECT 3 AS three");
        } finally {
          late = await tx.get("SELECT 4 AS four").catch((thrown: unknown) => thrown);
        }
      }),
    ]);
    expect(failed).toMatchObject(failed.map(() => ({ ...lost })));
    proxy.isSwallowing = false;
    expect(await db.get<{ one: number }>("SELECT 1 AS one")).toEqual({ one: 1 });
    expect(await db.transaction((tx) => tx.get<{ two: number }>("SELECT 2 AS two"))).toEqual({ two: 2 });
    expect(late).toBeInstanceOf(Error);
    await db.close();
    expect(unhandled).toEqual([]);
  });

  test("replaces all connections when one is silent", async () => {
    const { proxy, db } = await behindProxy();
    const useAll = () => Promise.all([1, 2, 3, 4].map(() => db.get("SELECT pg_sleep($1::float8)", [0.05])));
    await useAll();
    proxy.forgetConnections();
    expect(await failures([db.get("SELECT 1 AS one")])).toMatchObject([lost]);
    await useAll();
  });

  test("closes before the deadline of operations under way", async () => {
    const { proxy, db } = await behindProxy({ deadlineMs: 10 * LIMIT_MS });
    await db.get("SELECT 1 AS one");
    proxy.isSwallowing = true;
    const working = failures([db.get("SELECT 1 AS one"), db.transaction((tx) => tx.get("SELECT 2 AS two"))]);
    await eventually(() => proxy.swallowed >= 2);
    await db.close();
    expect(await working).toMatchObject([{ reason: "lost" }, { reason: "lost" }]);
    expect(unhandled).toEqual([]);
  });

  test("ends operations under way, also transactions, before it closes", async () => {
    const { db } = await behindProxy({ deadlineMs: 5_000 });
    const begun = Promise.withResolvers<void>();
    const working = db.transaction(async (tx) => {
      for (let n = 0; n < 3; n += 1) {
        await tx.get("SELECT pg_sleep($1::float8)", [0.1]);
        begun.resolve();
      }
      return "committed";
    });
    await begun.promise;
    await db.close();
    expect(await working).toBe("committed");
  });

  test("refuses operations that wait, or come after it was closed", async () => {
    const { url, db } = await behindProxy({ connections: 1 });
    const [first, second] = [db.get("SELECT pg_sleep($1::float8)", [0.2]), db.get("SELECT 1 AS one")];
    const waiting = failures([first, second]);
    const other = openDatabase(url);
    await eventually(async () => (await countRunning(other, "SELECT pg_sleep")) > 0);
    await db.close();
    expect(await waiting).toMatchObject([undefined, { reason: "lost", message: "the database was closed" }]);
    expect(await failures([db.get("SELECT 1 AS one"), db.transaction(async () => 1)])).toMatchObject([
      { reason: "lost" },
      { reason: "lost" },
    ]);
  });
});

describe.skipIf(!hasPostgres())("the deadline of an operation", () => {
  test("begins when it has a connection, so that waiting for one costs no connection", async () => {
    const { proxy, db } = await behindProxy({ connections: 1 });
    const pid = () => db.get<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    const before = await pid();
    // Each statement takes a bit less than the server's limit. Together they take longer than the deadline.
    await Promise.all([1, 2, 3, 4].map(() => db.get("SELECT pg_sleep($1::float8)", [0.2])));
    expect(await pid()).toEqual(before as never);
    expect(proxy.count()).toBe(1);
  });

  test("begins again at each answer of a transaction", async () => {
    const { db } = await behindProxy();
    const slow = db.transaction(async (tx) => {
      for (let n = 0; n < 3; n += 1) await tx.get("SELECT pg_sleep($1::float8)", [0.2]);
      return "done";
    });
    expect(await slow).toBe("done");
  });

  test("does not count time in which this process was paused", async () => {
    const { db } = await behindProxy();
    // Repeated, because the pool has only a few milliseconds to read the answers, and a busy machine can take longer.
    await eventually(async () => {
      await db.get("SELECT 1 AS one");
      const answers = [db.get("SELECT 1 AS one"), db.transaction((tx) => tx.get("SELECT 1 AS one"))];
      await nextTurn();
      Bun.sleepSync(DEADLINE_MS + 100);
      return (await failures(answers)).every((failure) => failure === undefined);
    });
  });

  test("is longer than the server's own limits, which end a statement without a new connection", async () => {
    const { db } = await behindProxy({ connections: 1 });
    const pid = () => db.get<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    const before = await pid();
    const [failed] = await failures([db.get("SELECT pg_sleep($1::float8)", [5])]);
    expect(failed).toMatchObject({ reason: "busy", message: "canceling statement due to statement timeout" });
    expect(await pid()).toEqual(before as never);
  });

  test("does not limit the wait for a connection, which ends with `busy`", async () => {
    const { db } = await behindProxy({ connections: 1, waitMs: 50 });
    const [, failed] = await failures([db.get("SELECT pg_sleep($1::float8)", [0.2]), db.get("SELECT 1 AS one")]);
    expect(failed).toMatchObject({ reason: "busy", message: "all connections to the database are in use" });
    expect(await db.get<{ one: number }>("SELECT 1 AS one")).toEqual({ one: 1 });
  });

  test("sets limits of the server, and the server ends connections to a node that is gone", async () => {
    const { url } = await postgresServer();
    const db = openDatabase(url, { deadlineMs: 10_000 });
    const names = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "tcp_keepalives_idle"];
    const settings = await Promise.all(
      names.map((name) => db.get<{ value: string }>("SELECT current_setting($1::text) AS value", [name])),
    );
    expect(settings.map((setting) => setting?.value)).toEqual(["8s", "4s", "500ms", "30"]);
  });
});

test("a deadline that was cleared never passes", async () => {
  const passed: string[] = [];
  const cleared = createDeadline(1, () => passed.push("cleared"));
  cleared.clear();
  const later = createDeadline(2, () => passed.push("later"));
  expect(await failures([later.passed])).toMatchObject([{ reason: "lost" }]);
  expect([passed, cleared.isPassed(), later.isPassed()]).toEqual([["later"], false, true]);
});
