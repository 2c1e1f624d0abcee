import { expect, test } from "bun:test";
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
