import { expect, test } from "bun:test";
import { join } from "node:path";
import { totalsStore } from "../../../src/store/quiet/totals.ts";
import { openDatabase } from "../../../src/store/sqlite/database.ts";
import { quietDatabase } from "../../../src/store/sqlite/quiet-database.ts";
import { START, temporaryFolder } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { UPGRADE } from "../../support/open-store.ts";

test("the totals count each of 1,200 connections once, although they are read in ranges", async () => {
  const db = openDatabase(join(temporaryFolder(), "sds.db"), 2_000, UPGRADE);
  afterTest(() => db.close());
  const numbers = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1200)";
  db.run(`${numbers} INSERT INTO shops (id, domain, plan, currency, created_at, intake_secret)
    SELECT n, n || '.myshopify.com', 'pro', 'USD', 0, x'' FROM n`);
  db.run(`${numbers} INSERT INTO connections (shop_id, kind, sealed, scopes, connected_at, events_since, trouble)
    SELECT n, 'token', x'', '', ${START} - n, 0, iif(n IN (1, 1200), NULL, 'refused') FROM n`);
  const { read } = totalsStore(quietDatabase(db));
  expect(await read(START)).toMatchObject({ refusedShops: 1_198, reconciledAt: START - 1_200 });
});
