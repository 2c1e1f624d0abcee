import { expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { deliveryLog } from "../../../src/store/quiet/delivery-log.ts";
import { inboxItems } from "../../../src/store/quiet/inbox-items.ts";
import type { QuietDatabase } from "../../../src/store/quiet/quiet-database.ts";
import { syncStore } from "../../../src/store/quiet/syncs.ts";
import { openDatabase } from "../../../src/store/sqlite/database.ts";
import { quietDatabase } from "../../../src/store/sqlite/quiet-database.ts";
import { addShop, HOUR, receipt, TOKENS } from "../../conformance/fixtures.ts";
import { randomBytes, START, temporaryFolder } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { openStoreIn, UPGRADE } from "../../support/open-store.ts";

/**
 * Makes 20 loaded shops with one webhook each. Also returns their database, which counts statements and transactions.
 */
async function restingShops() {
  const folder = temporaryFolder();
  const store = await openStoreIn(folder);
  for (let n = 0; n < 20; n += 1) {
    const shop = await addShop(store, `shop${n}`);
    await store.connections.connect(shop.id, "token", TOKENS, [], START);
    await store.syncs.complete(shop.id, "full", START, 0, START);
    await store.inbox.receive([receipt(shop, "w")], START + n);
  }
  await store.close();
  const db = openDatabase(join(folder, "sds.db"), 2_000, UPGRADE);
  afterTest(() => db.close());
  const quiet = quietDatabase(db);
  const counts = { statements: 0, transactions: 0 };
  const counted: QuietDatabase = {
    ...quiet,
    all(statement) {
      counts.statements += 1;
      return quiet.all(statement);
    },
    run(statement) {
      counts.statements += 1;
      return quiet.run(statement);
    },
    transaction(work) {
      counts.transactions += 1;
      return quiet.transaction(work);
    },
  };
  return { db, counted, counts };
}

test("a search for shops to load reads no shop that was loaded", async () => {
  const { db, counted } = await restingShops();
  const prepare = spyOn(db, "prepare");
  expect(await syncStore(counted).unloaded()).toEqual([]);
  expect(db.query("SELECT shop_id FROM connections WHERE load_pending").all()).toEqual([]);
  const [text = ""] = prepare.mock.calls.map(([sql]) => sql);
  const plan = db.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${text}`).all();
  expect(plan[0]?.detail).toBe("SCAN connections USING INDEX connections_to_load");
});

test("hourly jobs cost one statement, and a transaction or two for each shop with old rows", async () => {
  const { counted, counts } = await restingShops();
  await deliveryLog(counted, randomBytes).prune(START + HOUR, 0);
  await inboxItems(counted).forgetReceipts(START);
  expect(counts).toEqual({ statements: 2, transactions: 0 });
  await inboxItems(counted).forgetReceipts(START + 2);
  expect(counts).toEqual({ statements: 3, transactions: 4 });
});
