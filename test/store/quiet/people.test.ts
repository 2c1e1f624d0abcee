import { Database } from "bun:sqlite";
import { expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { nextTurn } from "../../../src/lib/waits.ts";
import { openStore } from "../../../src/store/open-store.ts";
import { START, temporaryFolder } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { UPGRADE } from "../../support/open-store.ts";
import { customer, gid } from "../../support/records.ts";

async function opened() {
  const folder = temporaryFolder();
  const masterKeyFile = join(folder, "master.key");
  const store = await openStore({ folder, masterKeyFile, busyTimeoutMs: 2_000, ...UPGRADE });
  afterTest(() => store.close());
  const shop = await store.shops.add({ domain: "alpha.myshopify.com", plan: "pro", currency: "USD" }, START);
  await store.mirror.applyRecords([{ shop, records: [customer(1)] }], START, []);
  return { folder, store, export: () => store.people.export(shop, gid.customer(1)) };
}

test("an export finds the subscriptions and orders of a person without reading all of the shop", async () => {
  const all = await opened();
  const spy = spyOn(Database.prototype, "prepare");
  afterTest(() => spy.mockRestore());
  await all.export();
  const [text = ""] = spy.mock.calls.map(([sql]) => sql).filter((sql) => sql.includes("'cancel_flow'"));
  spy.mockRestore();
  using db = new Database(join(all.folder, "sds.db"));
  const plan = db.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${text}`).all();
  const searches = plan
    .map(({ detail }) => detail)
    .filter((detail) => /(SEARCH|SCAN) (subscriptions|orders)/.test(detail));
  expect([...new Set(searches)]).toEqual([
    "SEARCH subscriptions USING PRIMARY KEY (shop_id=? AND started_at=? AND id=?)",
    "SEARCH orders USING PRIMARY KEY (shop_id=? AND billed_at=? AND id=?)",
  ]);
});

test("other work runs between two exports, because each one blocks the program", async () => {
  const all = await opened();
  const ended: number[] = [];
  const exports = [1, 2, 3].map((n) => all.export().then(() => ended.push(n)));
  const turns: number[] = [];
  while (ended.length < 3) {
    await nextTurn();
    turns.push(ended.length);
  }
  await Promise.all(exports);
  expect(turns).toEqual(expect.arrayContaining([1, 2, 3]));
});
