import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { failures } from "../../conformance/fixtures.ts";
import { temporaryFolder } from "../../support/app.ts";
import { openDatabase } from "../../support/postgres-connections.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";
import { openStoreAt } from "../../support/postgres-store.ts";

/** Makes the database look restored by pg_restore: its epoch names the system identifier of another server. */
const RESTORED = "UPDATE meta SET value = '7000000000000000000 16384' WHERE name = 'epoch_database'";

describe.skipIf(!hasPostgres())("the epoch of a PostgreSQL database", () => {
  async function opened() {
    const url = await emptyDatabase();
    const options = { masterKeyFile: join(temporaryFolder(), "master.key") };
    return { db: openDatabase(url), open: () => openStoreAt(url, options) };
  }

  test("is new for a restored backup, and the same for all nodes that start then", async () => {
    const { db, open } = await opened();
    const before = (await open()).epoch;
    expect((await open()).epoch).toEqual(before);
    await db.run(RESTORED);
    const [first, ...others] = await Promise.all([open(), open(), open(), open()]);
    expect(first.epoch).not.toEqual(before);
    expect(first.formerEpochs).toEqual([before]);
    for (const { epoch, formerEpochs } of others)
      expect({ epoch, formerEpochs }).toEqual({ epoch: first.epoch, formerEpochs: [before] });
    // After a restore in place, docs/scaling.md lets the operator do this.
    await db.run("UPDATE meta SET value = '' WHERE name = 'epoch_database'");
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
