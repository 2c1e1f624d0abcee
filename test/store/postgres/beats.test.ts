import { expect, test } from "bun:test";
import { failures } from "../../conformance/fixtures.ts";
import { startFaultyProxy } from "../../support/faulty-proxy.ts";
import { withPort } from "../../support/postgres-connections.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";
import { openStoreAt } from "../../support/postgres-store.ts";

test.skipIf(!hasPostgres())("a beat that nobody answers fails before the leases of the node end", async () => {
  const url = await emptyDatabase();
  const proxy = await startFaultyProxy(Number(new URL(url).port));
  const store = await openStoreAt(withPort(url, proxy.port));
  await store.nodes?.beat();
  proxy.isSwallowing = true;
  const lost = { reason: "lost", message: "the database did not answer within 2 s" };
  expect(await failures([store.nodes?.beat() ?? Promise.resolve()])).toMatchObject([lost]);
});
