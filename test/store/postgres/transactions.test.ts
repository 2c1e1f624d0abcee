import { describe, expect, test } from "bun:test";
import { SdsError } from "../../../src/domain/error.ts";
import { type Database, pipeline, type Queries, type Writes } from "../../../src/store/postgres/database.ts";
import { failures } from "../../conformance/fixtures.ts";
import { LIMIT_MS } from "../../support/eventually.ts";
import { startFaultyProxy } from "../../support/faulty-proxy.ts";
import { NO_IDLE_LIMIT, openDatabase, withPort } from "../../support/postgres-connections.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";

async function openTable(options = {}): Promise<Database & { url: string }> {
  const url = await emptyDatabase();
  const db = openDatabase(url, options);
  await db.run("CREATE TABLE counters (id bigint PRIMARY KEY, value bigint NOT NULL)");
  await db.run("INSERT INTO counters (id, value) VALUES (1, 0), (2, 0)");
  return { ...db, url };
}

const ADD = "UPDATE counters SET value = value + 1 WHERE id = $1::bigint";
const INSERT = "INSERT INTO counters (id, value) VALUES ($1::bigint, 0)";
const add = (tx: Queries, id: number) => tx.run(ADD, [id]);
const insert = (tx: Queries, id: number) => tx.run(INSERT, [id]);
const divide = (tx: Queries, by: number) => tx.get("SELECT 1 / $1::bigint", [by]);

async function values(db: Queries): Promise<number[]> {
  const rows = await db.all<{ value: number }>("SELECT value::float8 AS value FROM counters ORDER BY id");
  return rows.map(({ value }) => value);
}

for (const isPooled of [false, true]) {
  describe.skipIf(!hasPostgres())(`PostgreSQL transactions${isPooled ? ", as behind a pooler" : ""}`, () => {
    test("that deadlock are retried", async () => {
      const db = await openTable({ isPooled });
      const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let runs = 0;
      const both = async (tx: Queries, order: number[], mine: () => void, theirs: Promise<void>) => {
        runs += 1;
        await add(tx, order[0] ?? 0);
        mine();
        await theirs;
        await add(tx, order[1] ?? 0);
      };
      await Promise.all([
        db.transaction((tx) => both(tx, [1, 2], first.resolve, second.promise)),
        db.transaction((tx) => both(tx, [2, 1], second.resolve, first.promise)),
      ]);
      // The server cancels one of the two transactions, or both if both have waited long enough. The program runs each
      // cancelled transaction again.
      expect(runs).toBeGreaterThanOrEqual(3);
      expect(await values(db)).toEqual([2, 2]);
    });

    test("that cannot be serialized are retried, six times at most", async () => {
      const db = await openTable({ isPooled });
      let runs = 0;
      const fail = db.transaction(async (tx) => {
        runs += 1;
        await tx.script("DO $$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = 'serialization_failure'; END $$");
      });
      expect(await failures([fail])).toMatchObject([{ name: "StoreError", reason: "busy" }]);
      expect(runs).toBe(6);
    });

    test("fail with the first error of pipelined statements, not with a later error that it causes", async () => {
      const db = await openTable({ isPooled });
      const sendAll = (tx: Queries) => [add(tx, 1), insert(tx, 1), add(tx, 2), divide(tx, 0)];
      const failed = await failures([
        db.transaction((tx) => pipeline(sendAll(tx))),
        db.transaction((tx) => Promise.all(sendAll(tx))),
        db.transaction(async (tx) => {
          // The last statement fails only with "in failed transaction".
          throw (await failures(sendAll(tx))).at(-1);
        }),
      ]);
      expect(failed).toMatchObject(failed.map(() => ({ name: "StoreError", reason: "conflict" })));
      expect(await values(db)).toEqual([0, 0]);
    });

    test("commit nothing after a failure that the work ignores", async () => {
      const db = await openTable({ isPooled });
      const ignoring = db.transaction(async (tx) => {
        await add(tx, 1);
        await insert(tx, 1).catch(() => undefined);
        return "went on";
      });
      expect(await failures([ignoring])).toMatchObject([{ reason: "conflict" }]);
      expect(await values(db)).toEqual([0, 0]);
    });

    test("roll back if the work throws, and the refusal reaches the caller", async () => {
      const db = await openTable({ isPooled });
      const refusal = new SdsError("conflict", "there is one already");
      const refusing = [
        db.transaction(async (tx) => {
          await add(tx, 1);
          throw refusal;
        }),
        db.transaction(async (tx) => {
          await insert(tx, 1).catch(() => {
            throw refusal;
          });
        }),
      ];
      expect(await failures(refusing)).toEqual([refusal, refusal]);
      expect(await values(db)).toEqual([0, 0]);
    });

    test("commit their last statements in one round trip with COMMIT, or nothing", async () => {
      const db = await openTable({ isPooled });
      const commit = (write: (last: Writes) => Promise<void>) =>
        db.transaction(async (tx) => {
          await add(tx, 1);
          await tx.commitWith(write);
        });
      const refusal = new Error("a defect in the work");
      const failed = await failures([
        commit(async (last) => {
          await pipeline([last.run(ADD, [2]), last.run(INSERT, [1]), last.run(ADD, [2])]);
        }),
        // The driver cannot encode these values. The program refuses them before it sends any of the last statements.
        // If the driver refused them instead, the server would commit the other statements.
        commit(async (last) => {
          await pipeline([last.run(ADD, [2]), last.run(INSERT, [Symbol("3") as never])]);
        }),
        commit(async (last) => {
          await pipeline([last.run(ADD, [2]), last.run("SELECT $1::text[]", [["4", {} as never]])]);
        }),
        commit(async (last) => {
          await last.run(ADD, [2]);
          throw refusal;
        }),
        db.transaction(async (tx) => {
          await insert(tx, 1).catch(() => undefined);
          await tx.commitWith(async (last) => void (await last.run(ADD, [2])));
        }),
      ]);
      expect(failed).toMatchObject([{ reason: "conflict" }, {}, {}, refusal, { reason: "conflict" }]);
      expect(failed.slice(1, 3).map(String)).toEqual(["symbol", "object"].map(expect.stringContaining));
      expect(await values(db)).toEqual([0, 0]);
      await commit(async (last) => {
        await last.run(ADD, [2]);
        await last.run(ADD, [2]);
      });
      expect(await values(db)).toEqual([1, 2]);
    });

    test("are retried if their last statements deadlock", async () => {
      const db = await openTable({ isPooled });
      const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const both = (order: number[], mine: () => void, theirs: Promise<void>) =>
        db.transaction(async (tx) => {
          await add(tx, order[0] ?? 0);
          mine();
          await theirs;
          await tx.commitWith(async (last) => void (await last.run(ADD, [order[1] ?? 0])));
        });
      await Promise.all([both([1, 2], first.resolve, second.promise), both([2, 1], second.resolve, first.promise)]);
      expect(await values(db)).toEqual([2, 2]);
    });

    test("whose connection ends at COMMIT are not run again", async () => {
      const { url } = await openTable();
      const proxy = await startFaultyProxy(Number(new URL(url).port));
      const db = openDatabase(withPort(url, proxy.port), { isPooled });
      let runs = 0;
      const cut = db.transaction(async (tx) => {
        runs += 1;
        await add(tx, 1);
        proxy.cutAtAnswer = "COMMIT";
        await tx.commitWith(async (last) => void (await last.run(ADD, [2])));
      });
      expect(await failures([cut])).toMatchObject([{ reason: "lost" }]);
      expect(runs).toBe(1);
      expect(await values(db)).toEqual([1, 1]);
    });

    test("that have ended send no further statements", async () => {
      const db = await openTable({ isPooled });
      const late = Promise.withResolvers<Queries>();
      await db.transaction(async (tx) => late.resolve(tx));
      expect(await failures([add(await late.promise, 1)])).toMatchObject([{ reason: "lost" }]);
      expect(await values(db)).toEqual([0, 0]);
    });

    test("wait for a lock no longer than the server's limit", async () => {
      const db = await openTable({ isPooled, deadlineMs: 500 });
      const release = Promise.withResolvers<void>();
      const locked = Promise.withResolvers<void>();
      const holding = openDatabase(db.url, { deadlineMs: LIMIT_MS }).transaction(async (tx) => {
        await tx.run(NO_IDLE_LIMIT);
        await add(tx, 1);
        locked.resolve();
        await release.promise;
      });
      await locked.promise;
      const [single, whole] = await failures([add(db, 1), db.transaction((tx) => add(tx, 1))]);
      expect([single, whole]).toMatchObject([{ reason: "busy" }, { reason: "busy" }]);
      release.resolve();
      await holding;
      expect(await values(db)).toEqual([1, 0]);
    });
  });
}

describe.skipIf(!hasPostgres())("round trips to PostgreSQL", () => {
  test("are one for a statement, and two for a transaction with pipelined statements", async () => {
    const { url } = await openTable();
    const proxy = await startFaultyProxy(Number(new URL(url).port));
    const db = openDatabase(withPort(url, proxy.port), { connections: 1 });
    const single = () => add(db, 1);
    const transaction = () => db.transaction((tx) => pipeline([add(tx, 1), add(tx, 2), values(tx)]));
    const committing = () =>
      db.transaction(async (tx) => {
        await pipeline([add(tx, 1), values(tx)]);
        await tx.commitWith(async (last) => void (await last.run(ADD, [2])));
      });
    for (const work of [single, transaction, committing]) {
      // The first run prepares the statements. The second run is measured.
      await work();
      // Pipelined statements can arrive in several packets. With this delay all packets arrive before the first answer,
      // so they count as one trip.
      proxy.delayMs = 40;
      proxy.trips = 0;
      await work();
      proxy.delayMs = 0;
      expect(proxy.trips).toBe(work === single ? 1 : 2);
    }
  });
});
