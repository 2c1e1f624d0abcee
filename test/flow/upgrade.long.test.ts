import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { MIGRATIONS as POSTGRES_MIGRATIONS } from "../../src/store/postgres/migrations.ts";
import { MIGRATIONS } from "../../src/store/sqlite/migrations.ts";
import { readRows } from "../support/api-shop.ts";
import { temporaryFolder } from "../support/app.ts";
import { ENGINE, Program } from "../support/program.ts";
import { customer, gid } from "../support/records.ts";
import { type Answers, storedVersions, unpack } from "../support/stored-database.ts";
import { expectWaitingDeliveries } from "../support/stored-deliveries.ts";
import { storedPostgresVersions, unpackPostgres } from "../support/stored-postgres.ts";

/** The number of programs that run at the same time. */
const AT_ONCE = 3;

async function old(version: number): Promise<{ program: Program; answers: Answers }> {
  const data = join(temporaryFolder(), "data");
  // The platform does not run in this test.
  const env = { SDS_PLATFORM_URL: "http://127.0.0.1:9/{shop}", SDS_EGRESS_ALLOW: "127.0.0.0/8" };
  const program = new Program(data, env);
  const url = await program.databaseUrl();
  return { program, answers: await (url === undefined ? unpack(version, data) : unpackPostgres(version, url, data)) };
}

const CURRENT = (ENGINE === "postgres" ? POSTGRES_MIGRATIONS : MIGRATIONS).length;
const VERSIONS = ENGINE === "postgres" ? storedPostgresVersions() : storedVersions();

describe.each(VERSIONS)("a database of schema version %d", (version) => {
  test("is shown by every command as it was before", async () => {
    const { program, answers } = await old(version);
    // The first few programs race for the upgrade.
    for (let first = 0; first < answers.commands.length; first += AT_ONCE) {
      const some = answers.commands.slice(first, first + AT_ONCE);
      const results = await Promise.all(some.map(async ({ args }) => ({ args, ...(await program.run(args)) })));
      for (const [index, { args, status, stdout, stderr }] of results.entries()) {
        expect({ args, status, stderr }).toEqual({ args, status: 0, stderr: "" });
        // A later version may print more fields.
        expect({ args, printed: JSON.parse(stdout) as unknown }).toMatchObject({
          args,
          printed: JSON.parse(some[index]?.stdout ?? "") as object,
        });
      }
    }
  });

  test("sends its waiting deliveries, with the bodies and signatures from when they were queued", async () => {
    const { program, answers } = await old(version);
    await expectWaitingDeliveries(program, answers);
  });

  test.skipIf(version === CURRENT)(
    "is named in the log of the serve that upgrades it, with the copy, and only once",
    async () => {
      const { program } = await old(version);
      const server = await program.serve();
      const copy = ENGINE === "postgres" ? "" : `,"copy":"${program.data}/sds.db.before-upgrade-`;
      expect(server.output).toContain(`"message":"upgraded the database","fromSchema":${version},"toSchema":`);
      expect(server.output).toContain(copy);
      await server.stop();
      expect((await program.serve()).output).not.toContain("upgraded the database");
    },
  );

  test("takes new records and keys, which the next program finds", async () => {
    const { program, answers } = await old(version);
    const [shop] = answers.shops;
    const choice = ["--shop", shop?.domain ?? ""];
    const { id, key } = await program.json<{ id: string; key: string }>(["key", "create", "--label", "New", ...choice]);
    const record = JSON.stringify(customer(8_000, { email: "new@example.com" }));
    const imported = await program.json(["import", "-", ...choice], { stdin: record });
    expect(imported).toEqual({ read: 1, changed: 1, events: 0 });
    expect((await program.json<{ id: string }[]>(["key", "list", ...choice])).map((each) => each.id)).toContain(id);
    const { url } = await program.serve();
    const rows = await readRows(url, key, "customers");
    expect(rows.map(({ shopifyId }) => shopifyId)).toContain(gid.customer(8_000));
    expect(await readRows(url, shop?.key ?? "", "customers")).toEqual(rows);
  });
});
