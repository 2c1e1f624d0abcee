import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { openStore } from "../../../src/store/open-store.ts";
import { checkFacts } from "../../../src/store/postgres/server-check.ts";
import { failures } from "../../conformance/fixtures.ts";
import { temporaryFolder } from "../../support/app.ts";
import { makeBlackhole } from "../../support/blackhole.ts";
import { afterTest } from "../../support/cleanup.ts";
import { startFaultyProxy } from "../../support/faulty-proxy.ts";
import { UPGRADE } from "../../support/open-store.ts";
import { openDatabase, withPort } from "../../support/postgres-connections.ts";
import { type PostgresProcess, startPostgres } from "../../support/postgres-process.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";
import { openStoreAt } from "../../support/postgres-store.ts";

const PASSWORD = "hidden-p4ssw0rd";

/** All text of an error that could reach a log. */
function everythingOf(thrown: unknown): string {
  const { message, stack, cause } = thrown as Error;
  const own = [message, stack, JSON.stringify(thrown), Bun.inspect(thrown), String(thrown)].join("\n");
  return cause === undefined ? own : `${own}\n${everythingOf(cause)}`;
}

async function refusal(url: string, options = {}): Promise<string> {
  const [thrown] = await failures([openStoreAt(url, options)]);
  expect(thrown).toMatchObject({ name: "SdsError", code: "failed" });
  expect(everythingOf(thrown)).not.toContain(PASSWORD);
  return (thrown as Error).message;
}

describe.skipIf(!hasPostgres())("a PostgreSQL database that cannot be used", () => {
  let server: PostgresProcess;
  let admin: SQL;
  /** The address of the server, with a user and a password. */
  let url: URL;

  beforeAll(async () => {
    server = await startPostgres({ max_connections: 40, superuser_reserved_connections: 3 });
    admin = new SQL(server.url, { max: 1 });
    await admin.unsafe(`CREATE ROLE reader LOGIN PASSWORD '${PASSWORD}'`).simple();
    await admin.unsafe("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0").simple();
    const rules = ["local all all trust", "host all postgres all trust", "host latin,postgres,none,own reader all md5"];
    writeFileSync(join(server.folder, "data/pg_hba.conf"), `${rules.join("\n")}\n`);
    await admin.unsafe("SELECT pg_reload_conf()").simple();
    url = new URL(server.url);
    url.username = "reader";
    url.password = PASSWORD;
  });
  afterAll(() => admin.close());

  const at = (change: Partial<URL>) => Object.assign(new URL(url), change).href;

  test("because its port has no listener, is reported with what to do", async () => {
    expect(await refusal(at({ port: "1" }))).toBe(
      "there is no connection to postgres://127.0.0.1:1/postgres: start the server, or correct host and port of the " +
        "database address",
    );
    expect(await refusal(`postgres://reader:${PASSWORD}@no-such-host.invalid/x`)).toStartWith(
      "there is no connection to postgres://no-such-host.invalid:5432/x: ",
    );
    expect(await refusal(`postgres://reader:${PASSWORD}@/x?host=/none`)).toStartWith(
      "there is no connection to the database x at /none/.s.PGSQL.5432: ",
    );
  });

  test("because it does not answer", async () => {
    const proxy = await startFaultyProxy(Number(url.port));
    proxy.isSwallowing = true;
    expect(await refusal(withPort(url.href, proxy.port), { deadlineMs: 500 })).toBe(
      `postgres://127.0.0.1:${proxy.port}/postgres does not answer: check host and port of the database ` +
        "address, and firewalls in between",
    );
    await makeBlackhole("127.0.0.9", proxy.port);
    const dropped = new URL(withPort(url.href, proxy.port));
    dropped.hostname = "127.0.0.9";
    expect(await refusal(dropped.href, { deadlineMs: 500 })).toContain(" does not answer: ");
  });

  test("because the user, the password or the database is wrong", async () => {
    expect(await refusal(at({ password: `${PASSWORD}x` }))).toBe(
      `postgres://127.0.0.1:${url.port}/postgres refuses the user or the password of the database address: correct them`,
    );
    expect(await refusal(at({ password: "" }))).toBe(
      `postgres://127.0.0.1:${url.port}/postgres wants a password: put it into the database address, or into the file ` +
        "of PGPASSFILE",
    );
    expect(await refusal(at({ pathname: "none" }))).toBe(
      `the server has no such database as postgres://127.0.0.1:${url.port}/none: create it`,
    );
    expect(await refusal(at({ pathname: "template1" }))).toMatch(
      /^postgres:\S+ refuses this user from this machine: no pg_hba.conf entry for host "127.0.0.1"/,
    );
  });

  test("because the user may not make tables", async () => {
    expect(await refusal(url.href)).toBe(
      `the user of the database address lacks a right in postgres://127.0.0.1:${url.port}/postgres: permission denied ` +
        "for schema public. Make this user the owner of the database, or grant the user CREATE and USAGE on the schema",
    );
  });

  test("because the user may not read the tables", async () => {
    await openStoreAt(server.url);
    expect(await refusal(url.href)).toContain("lacks a right in ");
    await admin.unsafe("DROP SCHEMA public CASCADE; CREATE SCHEMA public").simple();
    expect(await refusal(url.href)).toContain("lacks a right in ");
  });

  test("because the user may only read a table of sds; tables of others do not count", async () => {
    const masterKeyFile = join(temporaryFolder(), "master.key");
    await openStoreAt(server.url, { masterKeyFile });
    await admin.unsafe("GRANT USAGE ON SCHEMA public TO reader").simple();
    await admin.unsafe("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO reader").simple();
    await admin.unsafe("CREATE TABLE of_somebody_else (value int)").simple();
    await openStoreAt(url.href, { masterKeyFile });
    await admin.unsafe("REVOKE UPDATE ON nodes FROM reader").simple();
    expect(await refusal(url.href)).toBe(
      `the user of the database address lacks a right in postgres://127.0.0.1:${url.port}/postgres: it may not read ` +
        "and write the table nodes. Make this user the owner of the database, or grant the user CREATE and USAGE on the schema",
    );
    await admin.unsafe("REVOKE USAGE ON SCHEMA public FROM reader, PUBLIC").simple();
    expect(await refusal(url.href, { mustExist: true })).toContain("lacks a right in ");
    await admin.unsafe("DROP SCHEMA public CASCADE; CREATE SCHEMA public").simple();
  });

  test("because its encoding loses characters", async () => {
    expect(await refusal(at({ pathname: "latin" }))).toBe(
      `postgres://127.0.0.1:${url.port}/latin has the encoding LATIN1: create the database with ENCODING 'UTF8'`,
    );
  });

  test("because it only reads", async () => {
    await admin.unsafe("ALTER ROLE reader SET default_transaction_read_only = on").simple();
    expect(await refusal(url.href)).toBe(
      `postgres://127.0.0.1:${url.port}/postgres can only be read, as a replica is: name the server that takes writes`,
    );
    await admin.unsafe("ALTER ROLE reader RESET ALL").simple();
  });

  test("any more, because the password was changed, is `lost` while the program runs", async () => {
    const db = openDatabase(url.href, { waitMs: 200 });
    await db.get("SELECT 1 AS one");
    await admin.unsafe("ALTER ROLE reader PASSWORD 'another'").simple();
    await admin.unsafe("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'").simple();
    const failed = await failures([db.get("SELECT 1 AS one"), db.transaction(async (tx) => tx.run("SELECT 1"))]);
    expect(failed).toMatchObject([{ reason: "lost" }, { reason: "lost" }]);
    expect(failed.map(everythingOf).join()).not.toContain(PASSWORD);
    await admin.unsafe(`ALTER ROLE reader PASSWORD '${PASSWORD}'`).simple();
    expect(await db.get<{ one: number }>("SELECT 1 AS one")).toEqual({ one: 1 });
  });

  test("any more, because the password was changed, is used with the new password of the file", async () => {
    await admin.unsafe("CREATE DATABASE own OWNER reader").simple();
    const folder = temporaryFolder();
    const file = join(folder, "database-url");
    const address = at({ pathname: "own" });
    writeFileSync(file, address);
    const store = await openStore({
      folder,
      masterKeyFile: join(folder, "master.key"),
      busyTimeoutMs: 2_000,
      ...UPGRADE,
      server: { url: address, file, passwordFile: null, sleep: Bun.sleep },
    });
    afterTest(() => store.close());
    await admin.unsafe("ALTER ROLE reader PASSWORD 'another'").simple();
    await admin.unsafe("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'").simple();
    expect(await failures([store.shops.list(), store.check()])).toMatchObject([{ reason: "lost" }, { reason: "lost" }]);
    writeFileSync(file, "");
    expect(await failures([store.shops.list()])).toMatchObject([{ reason: "lost" }]);
    writeFileSync(file, at({ pathname: "own", password: "another" }));
    expect(await store.shops.list()).toEqual([]);
    await store.check();
    await admin.unsafe(`ALTER ROLE reader PASSWORD '${PASSWORD}'`).simple();
  });

  test("because too many use it", async () => {
    const others = Array.from({ length: 39 }, () => openDatabase(server.url, { connections: 1, waitMs: 0 }));
    await Promise.all(others.map((each) => each.get("SELECT 1 AS one").catch(() => undefined)));
    expect(await refusal(url.href)).toContain("has too many connections already: raise max_connections of the server");
  });
});

test("PostgreSQL 14 is refused", () => {
  const facts = { version: "14.19", versionNumber: "140019", encoding: "UTF8", readOnly: "off" };
  expect(() => checkFacts(facts, "it")).toThrow("it is PostgreSQL 14.19: sds needs version 15 or later");
  checkFacts({ ...facts, version: "15.0", versionNumber: "150000" }, "it");
});

describe.skipIf(!hasPostgres())("the clock of the database", () => {
  const differing = (ms: number) => ({ now: () => Date.now() - ms });

  test("may differ by two seconds from this machine's", async () => {
    const url = await emptyDatabase();
    const masterKeyFile = join(temporaryFolder(), "master.key");
    for (const ms of [1_900, -1_900]) await openStoreAt(url, { ...differing(ms), masterKeyFile });
  });

  test("that differs by more is reported, with the difference and what to do", async () => {
    const url = await emptyDatabase();
    const advice = "the clock of this machine: set both by NTP, then start again; at most 2 s are allowed";
    expect(await refusal(url, differing(2_600))).toMatch(new RegExp(` is 2\\.[56] s ahead of ${advice}$`));
    expect(await refusal(url, differing(-3_600_000))).toMatch(new RegExp(` is 3600\\.\\d s behind ${advice}$`));
  });

  test("is not wrong because the answer took long", async () => {
    const url = await emptyDatabase();
    const proxy = await startFaultyProxy(Number(new URL(url).port));
    // Each query seems to take three seconds. Before the first query, the store's clock is 2.9 s behind the server's
    // clock; after it, 0.1 s ahead.
    let now = Date.now() - 2_900;
    await openStoreAt(withPort(url, proxy.port), {
      now() {
        now += 3_000;
        return now - 3_000;
      },
    });
  });
});
