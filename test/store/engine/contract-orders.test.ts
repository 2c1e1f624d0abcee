import { Database } from "bun:sqlite";
import { expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { openStore } from "../../../src/store/open-store.ts";
import { temporaryFolder } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { UPGRADE } from "../../support/open-store.ts";

test("a contract's orders are found by their ids, not by reading all orders of the shop", async () => {
  const folder = temporaryFolder();
  const spy = spyOn(Database.prototype, "prepare");
  afterTest(() => spy.mockRestore());
  const masterKeyFile = join(folder, "master.key");
  const store = await openStore({ folder, masterKeyFile, busyTimeoutMs: 2_000, ...UPGRADE });
  const byIds = spy.mock.calls
    .map(([sql]) => sql)
    .filter((sql) => /^SELECT json FROM orders [\s\S]*json_each/.test(sql));
  spy.mockRestore();
  await store.close();
  expect(byIds).toHaveLength(1);

  using db = new Database(join(folder, "sds.db"));
  const plan = db.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${byIds[0]}`).all();
  expect(plan[0]?.detail).toBe("SEARCH orders USING INDEX orders_by_id (id=? AND shop_id=?)");
});
