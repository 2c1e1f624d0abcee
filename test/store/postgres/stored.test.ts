import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { openApp } from "../../../src/app.ts";
import { readConfig } from "../../../src/config.ts";
import { nextTurn } from "../../../src/lib/next-turn.ts";
import { createLog } from "../../../src/log.ts";
import { MIGRATIONS } from "../../../src/store/postgres/migrations.ts";
import { randomBytes, temporaryFolder } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { askApp } from "../../support/described.ts";
import { emptyDatabase } from "../../support/postgres-connections.ts";
import { hasPostgres } from "../../support/postgres-server.ts";
import { dumpPostgres, storedPostgresVersions, unpackPostgres } from "../../support/stored-postgres.ts";

setDefaultTimeout(30_000);

test("every schema of PostgreSQL before today's has a stored database, and the first one has", () => {
  const wanted = Array.from({ length: Math.max(MIGRATIONS.length - 1, 1) }, (_, index) => index + 1);
  expect(wanted.filter((version) => !storedPostgresVersions().includes(version))).toEqual([]);
});

describe.if(hasPostgres()).each(storedPostgresVersions())("a PostgreSQL database of schema version %d", (version) => {
  test("is upgraded, and serves the bytes that it served before, page by page, for each key", async () => {
    const url = await emptyDatabase();
    const data = join(temporaryFolder(), "data");
    const answers = await unpackPostgres(version, url, data);
    // The clock must be near the server's.
    const now = Date.now;
    const app = await openApp(readConfig({ data, port: "0" }, { SDS_DATABASE_URL: url }), {
      now,
      clock: now,
      random: randomBytes,
      fetch,
      resolve: async () => [],
      sleep: nextTurn,
      log: createLog("error", { write: () => true }, now),
    });
    afterTest(() => app.stop());
    expect(answers.requests.length).toBeGreaterThan(50);
    for (const { key, path, status, body } of answers.requests) {
      const headers = { Authorization: `Bearer ${key}` };
      const response = await askApp(app, path, { headers });
      expect({ path, status: response.status, body: await response.text() }).toEqual({ path, status, body });
    }
    for (const { domain, intakeSecret } of answers.shops)
      expect((await app.store.shops.intakeSecret(domain))?.secret).toBe(intakeSecret);
    expect((await dumpPostgres(url)).schema).toBe(MIGRATIONS.length);
  });
});
