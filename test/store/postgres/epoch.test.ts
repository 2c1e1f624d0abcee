import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { SQL } from "bun";
import { failures } from "../../conformance/fixtures.ts";
import { temporaryFolder } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { eventually, LIMIT_MS } from "../../support/eventually.ts";
import { countLockWaits, openDatabase } from "../../support/postgres-connections.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";
import { openStoreAt } from "../../support/postgres-store.ts";

/** The statement that docs/scaling.md tells the operator to run. */
const RESTORED_IN_PLACE = "UPDATE meta SET value = '' WHERE name = 'epoch_database'";

describe.skipIf(!hasPostgres())("the epoch of a PostgreSQL database", () => {
  async function opened() {
    const url = await emptyDatabase();
    const options = { masterKeyFile: join(temporaryFolder(), "master.key"), deadlineMs: LIMIT_MS };
    return { url, db: openDatabase(url), open: () => openStoreAt(url, options) };
  }

  test("is new after the statement for a restore in place, and the same for all nodes that start then", async () => {
    const { url, db, open } = await opened();
    const before = (await open()).epoch;
    expect((await open()).epoch).toEqual(before);
    await db.run(RESTORED_IN_PLACE);
    // The epoch is locked until all nodes wait for it. So no node starts after another one has made it.
    const holder = new SQL(url, { max: 1 });
    afterTest(() => holder.close());
    await holder.unsafe("BEGIN; SELECT 1 FROM meta WHERE name = 'epoch' FOR UPDATE").simple();
    const starts = Promise.all([open(), open(), open(), open()]);
    await eventually(async () => (await countLockWaits(db)) === 4);
    await holder.unsafe("COMMIT").simple();
    const [first, ...others] = await starts;
    expect(first.epoch).not.toEqual(before);
    expect(first.formerEpochs).toEqual([before]);
    for (const { epoch, formerEpochs } of others)
      expect({ epoch, formerEpochs }).toEqual({ epoch: first.epoch, formerEpochs: [before] });
    await db.run(RESTORED_IN_PLACE);
    expect((await open()).formerEpochs).toEqual([first.epoch, before]);
  });

  test("that changed while a node ran makes the node unready", async () => {
    const { db, open } = await opened();
    const store = await open();
    await store.check();
    await db.run("DELETE FROM meta WHERE name = 'epoch'");
    await open();
    expect(await failures([store.check()])).toMatchObject([
      { code: "unavailable", message: "The database was restored from a backup: start this program again." },
    ]);
  });

  test("can be read by a user without special rights", async () => {
    const { db, open } = await opened();
    await open();
    const rights = await db.get<{ may: boolean }>(
      "SELECT has_function_privilege('pg_read_server_files'::regrole, 'pg_control_system()', 'EXECUTE') AS may",
    );
    expect(rights).toEqual({ may: true });
  });
});
