import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { CryptoHasher, Glob, SQL } from "bun";
import { MIGRATIONS } from "../../../src/store/postgres/migrations.ts";
import { migrate } from "../../../src/store/postgres/upgrade.ts";
import { failures } from "../../conformance/fixtures.ts";
import { temporaryFolder } from "../../support/app.ts";
import { afterTest } from "../../support/cleanup.ts";
import { eventually } from "../../support/eventually.ts";
import { openDatabase } from "../../support/postgres-connections.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";
import { openStoreAt } from "../../support/postgres-store.ts";

const SOURCE = join(import.meta.dir, "../../../src/store/postgres");
/** A process that opens a store when it reads a line on stdin, and prints the result. */
const OPENER = `
const { openPostgresStore } = await import(${JSON.stringify(join(SOURCE, "postgres-store.ts"))});
const { parseServerAddress } = await import(${JSON.stringify(join(SOURCE, "address.ts"))});
const [url, masterKeyFile] = process.argv.slice(1);
console.log("ready");
for await (const line of console) break;
const random = (count) => crypto.getRandomValues(new Uint8Array(count));
const options = { address: parseServerAddress(url, null), masterKeyFile, random, now: Date.now, sleep: Bun.sleep };
await openPostgresStore(options).then((store) => store.close()).then(() => console.log("open"), console.log);
process.exit();
`;

async function schemaOf(url: string): Promise<{ version: string | undefined; tables: string[] }> {
  const db = openDatabase(url);
  const tables = await db.all<{ name: string }>(
    "SELECT relname::text AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1",
  );
  const names = tables.map(({ name }) => name);
  const schema = await db.get<{ value: string }>("SELECT value FROM meta WHERE name = 'schema'").catch(() => undefined);
  return { version: schema?.value, tables: names };
}

async function message(work: Promise<unknown>, code = "failed"): Promise<string> {
  const [thrown] = await failures([work]);
  expect(thrown).toMatchObject({ name: "SdsError", code });
  return (thrown as Error).message;
}

test("migrations that a PostgreSQL database in the field may have run are not changed: add a new one", async () => {
  const folder = join(SOURCE, "migrations");
  const names = [...new Glob("*.sql").scanSync(folder)].sort();
  const hashOf = async (name: string) =>
    new CryptoHasher("sha256").update(await Bun.file(join(folder, name)).text()).digest("hex");
  expect(await Promise.all(names.map(async (name) => `${name} ${(await hashOf(name)).slice(0, 16)}`))).toEqual([
    "0001_tables.sql 414f6a239a793db6",
    "0002_changes_and_overlap.sql c86eddfef9c47616",
    "0003_no_large_bodies.sql 35c6d10cdf7dd21f",
    "0004_custom_fields_and_style.sql bb5f790901cc38ff",
    "0005_redactions.sql f15faab708263747",
    "0006_exchange_rates.sql 09f8ab84325b8e6c",
    "0007_queues_and_connections.sql 94f5e5014689b15f",
    "0008_renewals_and_installation.sql 39d6c9533d64b4c9",
    "0009_audit_and_alerts.sql f9cafd0a35cbe2e8",
    "0010_due_work.sql 4b53a5fa054592a5",
    "0011_unsent_events.sql 6ed056b01f791a06",
    "0012_shop_moves_and_loads.sql fc9f7d721a520ab3",
  ]);
});

describe.skipIf(!hasPostgres())("an upgrade of a PostgreSQL database", () => {
  test("is made once by six processes that begin together", async () => {
    const url = await emptyDatabase();
    const masterKeyFile = join(temporaryFolder(), "master.key");
    const children = Array.from({ length: 6 }, () =>
      Bun.spawn([process.execPath, "-e", OPENER, url, masterKeyFile], { stdin: "pipe", stdout: "pipe" }),
    );
    const outputs = children.map((child) => child.stdout.pipeThrough(new TextDecoderStream()).getReader());
    await Promise.all(outputs.map((output) => output.read()));
    for (const { stdin } of children) {
      stdin.write("go\n");
      stdin.end();
    }
    expect(await Promise.all(outputs.map(async (output) => (await output.read()).value))).toEqual(
      children.map(() => "open\n"),
    );
    await Promise.all(children.map(({ exited }) => exited));
    expect((await schemaOf(url)).version).toBe(String(MIGRATIONS.length));
  });

  test("runs the missing migrations, once", async () => {
    const url = await emptyDatabase();
    const db = openDatabase(url);
    const first = `CREATE TABLE one (n bigint); -- A comment; with a semicolon
      INSERT INTO one VALUES (1); /* another; */
      CREATE FUNCTION twice(n bigint) RETURNS bigint LANGUAGE plpgsql AS $$
      BEGIN
        RETURN n * 2; -- '
      END $$;
      CREATE TABLE meta (name text PRIMARY KEY, value text NOT NULL)`;
    const second = "INSERT INTO one SELECT twice(n) FROM one; INSERT INTO one VALUES (';'::text = 'x;y')";
    const upgrade = (...migrations: string[]) => migrate(db, "it", { migrations, sleep: Bun.sleep });
    await upgrade(first);
    await upgrade(first);
    const good = "INSERT INTO one SELECT twice(n) FROM one";
    const [failed] = await failures([upgrade(first, second)]);
    expect(String(failed)).toContain("column");
    // The failed migration left nothing.
    expect([await db.all("SELECT n::float8 AS n FROM one"), (await schemaOf(url)).version]).toEqual([[{ n: 1 }], "1"]);
    await upgrade(first, good);
    await upgrade(first, good);
    expect(await db.all<object>("SELECT n::float8 AS n FROM one ORDER BY one.n")).toEqual([{ n: 1 }, { n: 2 }]);
  });

  test("by another program is waited for, and a command refuses after its wait", async () => {
    const url = await emptyDatabase();
    // A plain connection, because a busy machine can reach the time limits of our own connections.
    const other = new SQL(url, { max: 1 });
    afterTest(() => other.close());
    const locked = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const upgrading = other.begin(async (tx) => {
      await tx.unsafe("SELECT pg_advisory_xact_lock($1::bigint)", [0x73647331]);
      locked.resolve();
      await release.promise;
    });
    await locked.promise;
    const texts: string[] = [];
    const onUpgradeStep = (text: string) => texts.push(text);
    const opening = openStoreAt(url, { deadlineMs: 500, onUpgradeStep });
    await eventually(() => texts.length > 0);
    expect(texts).toEqual([expect.stringMatching(/^another sds upgrades .*: it begins$/)]);
    expect(await message(openStoreAt(url, { upgradeWaitMs: 300 }), "unavailable")).toEndWith("Try again later");
    release.resolve();
    await upgrading;
    await opening;
  });

  test("leaves a database of another program alone", async () => {
    for (const table of ["customers (id bigint)", "meta (name text, value text)", "meta (id int)", "meta (name int)"]) {
      const url = await emptyDatabase();
      await openDatabase(url).run(`CREATE TABLE ${table}`);
      const refused = await message(openStoreAt(url));
      expect(refused).toEndWith("has tables of another program: give sds a database of its own");
      expect((await schemaOf(url)).tables).toEqual([table.split(" ")[0] ?? ""]);
    }
  });

  test("is not needed for a database one version newer; a database two versions newer is refused", async () => {
    const url = await emptyDatabase();
    const masterKeyFile = join(temporaryFolder(), "master.key");
    const store = await openStoreAt(url, { masterKeyFile });
    const db = openDatabase(url);
    const setVersion = (version: number) =>
      db.run("UPDATE meta SET value = $1::text WHERE name = 'schema'", [String(version)]);
    await setVersion(MIGRATIONS.length + 1);
    await openStoreAt(url, { masterKeyFile, mustExist: true });
    await store.check();
    expect((await schemaOf(url)).version).toBe(String(MIGRATIONS.length + 1));
    await setVersion(MIGRATIONS.length + 2);
    expect(await message(openStoreAt(url, { masterKeyFile }))).toMatch(
      new RegExp(
        `was written by a newer sds \\(schema ${MIGRATIONS.length + 2}, this one knows ${MIGRATIONS.length}\\): ` +
          "install that version or a later one; nothing was changed$",
      ),
    );
    expect(await failures([store.check()])).toMatchObject([{ code: "unavailable" }]);
  });

  test("is not made if the database must have data", async () => {
    const url = await emptyDatabase();
    const [refused] = await failures([openStoreAt(url, { mustExist: true })]);
    expect(refused).toMatchObject({ code: "not_found" });
    expect((await schemaOf(url)).tables).toEqual([]);
  });
});
