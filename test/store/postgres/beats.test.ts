import { expect, test } from "bun:test";
import { join } from "node:path";
import { parseServerAddress } from "../../../src/store/postgres/address.ts";
import { openPostgresStore } from "../../../src/store/postgres/postgres-store.ts";
import { failures } from "../../conformance/fixtures.ts";
import { randomBytes, temporaryFolder } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { startFaultyProxy } from "../../support/faulty-proxy.ts";
import { emptyDatabase, withPort } from "../../support/postgres-connections.ts";
import { hasPostgres } from "../../support/postgres-server.ts";

test.skipIf(!hasPostgres())("a beat that nobody answers fails before the leases of the node end", async () => {
  const url = await emptyDatabase();
  const proxy = await startFaultyProxy(Number(new URL(url).port));
  const store = await openPostgresStore({
    address: parseServerAddress(withPort(url, proxy.port), null),
    masterKeyFile: join(temporaryFolder(), "master.key"),
    random: randomBytes,
    now: Date.now,
    sleep: Bun.sleep,
  });
  afterTest(() => store.close());
  await store.nodes?.beat();
  proxy.isSwallowing = true;
  const lost = { reason: "lost", message: "the database did not answer within 2 s" };
  expect(await failures([store.nodes?.beat() ?? Promise.resolve()])).toMatchObject([lost]);
});
