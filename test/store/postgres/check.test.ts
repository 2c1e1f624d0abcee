import { expect, test } from "bun:test";
import { SQL } from "bun";
import { failures } from "../../conformance/fixtures.ts";
import { startFaultyProxy } from "../../support/faulty-proxy.ts";
import { withPort } from "../../support/postgres-connections.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";
import { openStoreAt } from "../../support/postgres-store.ts";

test.skipIf(!hasPostgres())("a check fails in two seconds while no server can be reached", async () => {
  const url = await emptyDatabase();
  const proxy = await startFaultyProxy(Number(new URL(url).port));
  const store = await openStoreAt(withPort(url, proxy.port));
  await store.check();
  const lost = { reason: "lost", message: "the database did not answer within 2 s" };
  proxy.isSwallowing = true;
  expect(await failures([store.check()])).toMatchObject([lost]);
  proxy.stop();
  expect(await failures([store.check()])).toMatchObject([{ reason: "lost" }]);
});

test.skipIf(!hasPostgres())("a check needs new space, so it fails where a write in place still succeeds", async () => {
  const url = await emptyDatabase();
  // A stand-in for a full disk: the server refuses temporary files, but accepts rows.
  await onServer(url, (sql) =>
    sql.unsafe(`ALTER DATABASE "${new URL(url).pathname.slice(1)}" SET temp_file_limit = 0`),
  );
  const limited = await openStoreAt(url);
  await limited.shops.add({ domain: "alpha.myshopify.com", plan: "pro", currency: "USD" }, Date.now());
  const failure = { reason: "lost", message: expect.stringContaining("temporary file size exceeds") };
  expect(await failures([limited.check()])).toMatchObject([failure]);
});

async function onServer(url: string, work: (sql: SQL) => Promise<unknown>): Promise<void> {
  const sql = new SQL(url, { max: 1 });
  await work(sql);
  await sql.close();
}
