import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { openStore } from "../../src/store/open-store.ts";
import { withStoreErrors } from "../../src/store/sqlite/errors.ts";
import { addShop, commit, failures } from "../conformance/fixtures.ts";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { UPGRADE } from "../support/open-store.ts";
import { customer } from "../support/records.ts";

test("the write-ahead log stays at a few megabytes while commits go on", async () => {
  const folder = temporaryFolder();
  const masterKeyFile = join(folder, "master.key");
  const store = await openStore({ folder, masterKeyFile, busyTimeoutMs: 2_000, ...UPGRADE });
  afterTest(() => store.close());
  const shop = await addShop(store);
  for (let n = 0; n < 200; n += 1) await commit(store, shop, [customer(n + 1)]);
  expect(statSync(join(folder, "sds.db-wal")).size).toBeWithin(1_000_000, 6_000_000);
});

test.each([
  [true, 1, "stored"],
  [true, 2, "lost"],
  [false, 1, "lost"],
])("after a write found the disk full, the log is emptied (%p); %d failures end as %s", async (empties, count, end) => {
  let failed = 0;
  const full = Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
  const part = {
    async write() {
      failed += 1;
      if (failed <= count) throw full;
      return "stored";
    },
  };
  const remedies = { lockWait: { repeat: () => Promise.reject(full) }, truncateLog: () => empties, folder: "/data" };
  const written = withStoreErrors(part, remedies).write();
  if (end === "stored") expect(await written).toBe("stored");
  else expect((await failures([written]))[0]).toMatchObject({ name: "StoreError", reason: "lost" });
});
