import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { MIGRATIONS } from "../../../src/store/postgres/migrations.ts";
import { temporaryFolder } from "../../support/app.ts";
import { expectCountedLog } from "../../support/counted-log.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";
import { expectStoredAnswers, openOnPostgres } from "../../support/stored-answers.ts";
import { dumpPostgres, storedPostgresVersions, unpackPostgres } from "../../support/stored-postgres.ts";

test("every schema of PostgreSQL before today's has a stored database, and the first one has", () => {
  const wanted = Array.from({ length: Math.max(MIGRATIONS.length - 1, 1) }, (_, index) => index + 1);
  expect(wanted.filter((version) => !storedPostgresVersions().includes(version))).toEqual([]);
});

describe.skipIf(!hasPostgres()).each(storedPostgresVersions())(
  "a PostgreSQL database of schema version %d",
  (version) => {
    test("is upgraded, and serves the bytes that it served before, page by page, for each key", async () => {
      const url = await emptyDatabase();
      const data = join(temporaryFolder(), "data");
      const answers = await unpackPostgres(version, url, data);
      const opened = await openOnPostgres(url, data);
      await expectStoredAnswers(opened, answers);
      await expectCountedLog(opened.store);
      expect((await dumpPostgres(url)).schema).toBe(MIGRATIONS.length);
    });
  },
);
