import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { openStore } from "../../../src/store/open-store.ts";
import { temporaryFolder } from "../../support/app.ts";
import { UPGRADE } from "../../support/open-store.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";

async function start(folder: string, masterKeyFile: string, url?: string): Promise<void> {
  const server = { url: url ?? (await emptyDatabase()), passwordFile: null, sleep: Bun.sleep };
  const store = await openStore({ folder, masterKeyFile, busyTimeoutMs: 2_000, ...UPGRADE, server });
  await store.close();
}

test.skipIf(!hasPostgres())("a first start on PostgreSQL makes a data folder for the master key alone", async () => {
  const within = temporaryFolder();
  await expect(start(join(within, "data"), join(within, "keys/master.key"))).rejects.toThrow("keys/master.key");
  expect(readdirSync(within)).toEqual([]);
  mkdirSync(join(within, "keys"));
  await start(join(within, "data"), join(within, "keys/master.key"));
  expect([existsSync(join(within, "data")), readdirSync(join(within, "keys"))]).toEqual([false, ["master.key"]]);
  const url = await emptyDatabase();
  await start(join(within, "data"), join(within, "data/master.key"), url);
  expect(readdirSync(join(within, "data"))).toEqual(["master.key"]);
  const other = join(within, "other");
  await expect(start(other, join(other, "master.key"), url)).rejects.toThrow("put it back from your backup");
  expect(existsSync(other)).toBeFalse();
});
