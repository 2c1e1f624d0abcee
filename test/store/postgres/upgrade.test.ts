import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { SQL } from "bun";
import type { Database } from "../../../src/store/postgres/database.ts";
import { MIGRATIONS } from "../../../src/store/postgres/migrations.ts";
import { migrate } from "../../../src/store/postgres/upgrade.ts";
import { failures } from "../../conformance/fixtures.ts";
import { afterTest } from "../../support/cleanup.ts";
import { eventually } from "../../support/eventually.ts";
import { hasPgBouncer, startPgBouncer } from "../../support/pgbouncer.ts";
import { countRunning, openDatabase } from "../../support/postgres-connections.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";
import { databaseWithTables, openStoreAt } from "../../support/postgres-store.ts";

const SOURCE = join(import.meta.dir, "../../../src/store/postgres");
const ROWS = 2_500;
const FIRST = `CREATE TABLE meta (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE things (shop_id bigint, id text COLLATE "C", n bigint NOT NULL, PRIMARY KEY (shop_id, id));
INSERT INTO things SELECT number % 3, 'thing ' || number, number FROM generate_series(1, ${ROWS}) AS number;`;
/** Has every kind of step. The column `fills`, later `filled`, counts how often a row was filled. */
const SECOND = `ALTER TABLE things ADD COLUMN fills bigint NOT NULL DEFAULT 0;
CREATE INDEX things_by_number ON things (n);
-- step: backfill things
UPDATE things SET fills = fills + 1 FROM batch WHERE things.shop_id = batch.shop_id AND things.id = batch.id;
-- step: transaction
ALTER TABLE things RENAME COLUMN fills TO filled;
CREATE UNIQUE INDEX things_filled ON things (filled, n);`;
/** Upgrades in a process of its own, and prints what it does. */
const UPGRADER = `
const { migrate } = await import(${JSON.stringify(join(SOURCE, "upgrade.ts"))});
const { openConnections } = await import(${JSON.stringify(join(SOURCE, "database.ts"))});
const { parseServerAddress } = await import(${JSON.stringify(join(SOURCE, "address.ts"))});
const [url, migrations] = process.argv.slice(1);
const address = parseServerAddress(url, null);
const db = openConnections({ address, connections: 2, deadlineMs: 60_000, waitMs: 5_000, isPooled: false, sleep: Bun.sleep });
const sleep = (ms) => { console.log("a pause"); return Bun.sleep(10 + ms); };
await migrate(db, "it", { migrations: JSON.parse(migrations), sleep, onStep: (text) => console.log(text) });
process.exit();
`;

const upgrade = (db: Database, ...migrations: string[]) => migrate(db, "it", { migrations, sleep: Bun.sleep });

async function stateOf(db: Database) {
  const indexes = await db.all<{ name: string }>(
    `SELECT indexrelid::regclass::text AS name FROM pg_index WHERE indrelid = 'things'::regclass AND indisvalid ORDER BY 1`,
  );
  const filled = await db.get<{ rows: number }>("SELECT count(*)::float8 AS rows FROM things WHERE filled = 1");
  const meta = await db.all<{ name: string; value: string }>("SELECT name, value FROM meta ORDER BY name");
  return { indexes: indexes.map(({ name }) => name), filled: filled?.rows, meta: meta.map(({ value }) => value) };
}

const UPGRADED = { indexes: ["things_by_number", "things_filled", "things_pkey"], filled: ROWS, meta: ["sds1", "2"] };

describe.skipIf(!hasPostgres())("an upgrade in steps", () => {
  test("adds columns, builds indexes and fills rows, each row once", async () => {
    const db = openDatabase(await emptyDatabase());
    await upgrade(db, FIRST);
    await upgrade(db, FIRST, SECOND);
    expect(await stateOf(db)).toEqual(UPGRADED);
  });

  test.skipIf(!hasPgBouncer())("works behind a pooler in transaction mode", async () => {
    const url = await emptyDatabase();
    const pooled = openDatabase(await startPgBouncer(url, { pool_mode: "transaction" }), { isPooled: true });
    await upgrade(pooled, FIRST);
    await upgrade(pooled, FIRST, SECOND);
    expect(await stateOf(openDatabase(url))).toEqual(UPGRADED);
  });

  test("continues after kills at each moment, and fills each row once", async () => {
    const url = await emptyDatabase();
    const db = openDatabase(url);
    await upgrade(db, FIRST);
    let kills = 0;
    for (let status: number | null = null; status !== 0; ) {
      const args = [url, JSON.stringify([FIRST, SECOND])];
      const child = Bun.spawn([process.execPath, "-e", UPGRADER, ...args], { stdout: "pipe" });
      // Each process is killed one printed line later than the process before.
      let lines = 0;
      for await (const _ of child.stdout) {
        lines += 1;
        if (lines > kills && child.exitCode === null) child.kill("SIGKILL");
      }
      status = await child.exited.then(() => child.exitCode);
      if (status !== 0) kills += 1;
    }
    expect(kills).toBeGreaterThan(0);
    expect(await stateOf(db)).toEqual(UPGRADED);
  });

  test("is made once by two programs that begin together", async () => {
    const url = await emptyDatabase();
    const [one, two] = [openDatabase(url), openDatabase(url)];
    await Promise.all([one, two].map((db) => upgrade(db, FIRST)));
    await Promise.all([one, two].map((db) => upgrade(db, FIRST, SECOND)));
    expect(await stateOf(one)).toEqual(UPGRADED);
  });

  test("drops the index of a build that ended early, and builds it again", async () => {
    const url = await emptyDatabase();
    const db = openDatabase(url);
    await upgrade(db, FIRST);
    const other = new SQL(url, { max: 2 });
    afterTest(() => other.close());
    const release = Promise.withResolvers<void>();
    const writing = Promise.withResolvers<void>();
    const blocker = other.begin(async (tx) => {
      await tx.unsafe("UPDATE things SET n = n WHERE id = 'thing 1'");
      writing.resolve();
      await release.promise;
    });
    await writing.promise;
    const index = "CREATE INDEX things_by_number ON things (n);";
    const upgrading = failures([upgrade(db, FIRST, index)]);
    const END_BUILD = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND query LIKE 'CREATE INDEX CONCURRENTLY%' AND wait_event_type = 'Lock'`;
    await eventually(async () => (await other.unsafe(END_BUILD)).length > 0);
    await upgrading;
    const invalid = await db.all("SELECT 1 AS one FROM pg_index WHERE NOT indisvalid");
    expect(invalid).toHaveLength(1);
    release.resolve();
    await blocker;
    await upgrade(db, FIRST, index);
    expect(await db.all("SELECT 1 AS one FROM pg_index WHERE NOT indisvalid")).toEqual([]);
  });

  test("lets others write while it waits for a transaction that has a lock", async () => {
    const url = await emptyDatabase();
    const db = openDatabase(url);
    await upgrade(db, FIRST);
    const other = new SQL(url, { max: 2 });
    afterTest(() => other.close());
    const release = Promise.withResolvers<void>();
    const reading = Promise.withResolvers<void>();
    const reader = other.begin(async (tx) => {
      await tx.unsafe("SELECT count(*) FROM things");
      reading.resolve();
      await release.promise;
    });
    await reading.promise;
    const steps: string[] = [];
    const options = { migrations: [FIRST, SECOND], sleep: Bun.sleep, onStep: (text: string) => steps.push(text) };
    const upgrading = migrate(db, "it", options);
    await eventually(() => steps.length > 0);
    expect(steps).toEqual(["schema 2, step 1: waits for a transaction that has a lock"]);
    await other.unsafe("SET lock_timeout = '1s'; UPDATE things SET n = n WHERE id = 'thing 1'").simple();
    release.resolve();
    await Promise.all([reader, upgrading]);
    expect(await stateOf(db)).toEqual(UPGRADED);
  });

  test("lets nodes of the version before work, and refuses nodes two versions behind only at its end", async () => {
    const url = await databaseWithTables();
    const store = await openStoreAt(url);
    const db = openDatabase(url);
    const next = "ALTER TABLE alerts ADD COLUMN more bigint;";
    const last = `CREATE INDEX alerts_since ON alerts (since);
      \n-- step: transaction\nALTER TABLE alerts DROP COLUMN more;`;
    await upgrade(db, ...MIGRATIONS, next);
    const other = new SQL(url, { max: 1 });
    afterTest(() => other.close());
    const release = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const writer = other.begin(async (tx) => {
      await tx.unsafe("LOCK TABLE alerts IN ROW EXCLUSIVE MODE");
      locked.resolve();
      await release.promise;
    });
    await locked.promise;
    const upgrading = upgrade(db, ...MIGRATIONS, next, last);
    await eventually(async () => (await countRunning(db, "CREATE INDEX CONCURRENTLY")) === 1);
    await store.check();
    release.resolve();
    await Promise.all([writer, upgrading]);
    expect(await failures([store.check()])).toMatchObject([{ code: "unavailable" }]);
  });
});
