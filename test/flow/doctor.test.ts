import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { NEEDED_SCOPES } from "../../src/domain/platform/connection.ts";
import { temporaryFolder } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { PlatformProcess } from "../support/platform-process.ts";
import { freePort } from "../support/postgres-process.ts";
import { ENGINE, Program } from "../support/program.ts";
import { canMount, mountDisk } from "../support/small-disk.ts";

const isSqlite = ENGINE === "sqlite";
const NOBODY = 65_534;
/** Any free port. Otherwise the doctor would report another program that uses the default port. */
const PORT = { SDS_PORT: "0" };

interface Result {
  check: string;
  ok: boolean;
  detail: string;
  remedy: string | null;
}

/**
 * The names, sizes, times, modes and owners of a folder and its files. While `serve` runs, leaves out the sizes and
 * times of the database's files, because `serve` shortens the write-ahead log each minute.
 */
function listing(folder: string, isServed: boolean): string[] {
  if (!existsSync(folder)) return [];
  return [".", ...readdirSync(folder).toSorted()].map((name) => {
    const { size, mtimeMs, mode, uid, ino } = lstatSync(join(folder, name));
    const mayChange = isServed && name.startsWith("sds.db");
    return [name, mode, uid, ino, ...(mayChange ? [] : [size, mtimeMs])].join(" ");
  });
}

/**
 * Runs the doctor, and checks that it changes nothing.
 * @param isServed whether `serve` runs on the folder
 * @returns the failures, by their checks
 */
async function failuresOf(
  program: Program,
  env: Record<string, string> = {},
  isServed = false,
): Promise<Record<string, Result>> {
  const before = listing(program.data, isServed);
  const began = performance.now();
  const { status, stdout, stderr } = await program.run(["doctor", "--json"], { env: { ...PORT, ...env } });
  expect(performance.now() - began).toBeLessThan(20_000);
  expect(listing(program.data, isServed)).toEqual(before);
  const results = JSON.parse(stdout) as Result[];
  const failed = results.filter(({ ok }) => !ok);
  expect(status).toBe(failed.length === 0 ? 0 : 1);
  expect(stderr).toBe(failed.length === 0 ? "" : `sds: ${failed.length} of ${results.length} checks failed\n`);
  expect(results.filter(({ ok, remedy }) => ok !== (remedy === null))).toEqual([]);
  return Object.fromEntries(failed.map((result) => [result.check, result]));
}

/** Runs the doctor on one fault. @returns its detail and its remedy */
async function onlyFault(
  check: string,
  program: Program,
  env?: Record<string, string>,
  isServed?: boolean,
): Promise<string> {
  const failures = await failuresOf(program, env, isServed);
  expect(Object.keys(failures)).toEqual([check]);
  return `${failures[check]?.detail} | ${failures[check]?.remedy}`;
}

test("sds doctor finds nothing wrong with a healthy folder, before serve runs, while it runs and after a kill", async () => {
  const program = await Program.withShop();
  expect(await failuresOf(program)).toEqual({});
  const port = String(freePort());
  const metrics = { SDS_METRICS: `127.0.0.1:${freePort()}` };
  const server = await program.serve(["serve", "--port", port], metrics);
  expect(await failuresOf(program, { SDS_PORT: port, ...metrics }, true)).toEqual({});
  const text = await program.run(["doctor"], { env: { SDS_PORT: port } });
  expect(text).toMatchObject({ status: 0, stderr: "" });
  expect(text.stdout).toMatch(new RegExp(`^ok {4}port +\`sds serve\` uses port ${port} of 127.0.0.1$`, "m"));
  await server.stop("SIGKILL");
  expect(await failuresOf(program)).toEqual({});
});

test("sds doctor compares the clock with the platform of a connected shop, and finds nothing wrong with it", async () => {
  const platform = await new PlatformProcess().start();
  await platform.tell("addShop", {});
  const program = await Program.withShop(platform.env);
  await program.json(["shop", "connect", "alpha.myshopify.com", "--client-credentials"]);
  expect(await failuresOf(program)).toEqual({});
  const { stdout } = await program.run(["doctor"], { env: PORT });
  const clocks = isSqlite ? "the platform" : "the database server and the platform";
  expect(stdout).toMatch(new RegExp(`^ok {4}clock +as ${clocks}$`, "m"));
});

test("sds doctor tells another program on the port from its own serve", async () => {
  const program = await Program.withShop();
  using other = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("not sds") });
  const port = String(other.port);
  const found = await onlyFault("port", program, { SDS_PORT: port });
  expect(found).toStartWith(`another program, or a \`serve\` that hangs, uses port ${port}`);
  const server = await (await Program.withShop()).serve();
  const theirs = await onlyFault("port", program, { SDS_PORT: new URL(server.url).port });
  expect(theirs).toStartWith("`sds serve` of other data uses port");
  expect(await onlyFault("metrics port", program, { SDS_METRICS: `127.0.0.1:${port}` })).toContain("with SDS_METRICS");
  // The address of a killed `serve` stays in the database, and another program may take the port.
  const own = await program.serve();
  await own.stop("SIGKILL");
  using later = Bun.serve({ hostname: "127.0.0.1", port: new URL(own.url).port, fetch: () => new Response("not sds") });
  expect(await onlyFault("port", program, { SDS_PORT: String(later.port) })).toStartWith("another program");
});

test("sds doctor finds a limit of open files that is too low for the running serve", async () => {
  const program = await Program.withShop();
  await program.serve(undefined, undefined, { descriptors: 300 });
  const found = await onlyFault("open files", program, undefined, true);
  expect(found).toStartWith("the running `sds serve` may open 300 files, and needs 768 | raise the limit");
});

test("sds doctor finds unknown and wrong settings, and what serve warns of", async () => {
  const program = await Program.withShop();
  expect(await onlyFault("settings", program, { SDS_PROT: "99" })).toContain("did you mean SDS_PORT?");
  expect(await onlyFault("settings", program, { SDS_PORT: "none" })).toContain('SDS_PORT is "none"');
  const allowed = await onlyFault("private addresses", program, { SDS_EGRESS_ALLOW: "10.0.0.0/8" });
  expect(allowed).toContain("SDS_EGRESS_ALLOW is set");
  const many = await onlyFault("open files", program, { SDS_DELIVERY_CONCURRENCY: "99999" });
  expect(many).toContain("and needs 100255 | raise the limit");
  writeFileSync(join(program.data, "sds.env"), "SDS_PORT\n");
  expect(await onlyFault("settings", program)).toContain("sds.env line 1 is no setting");
});

test("sds doctor finds a missing, a wrong, an unreadable and a public master key", async () => {
  const program = await Program.withShop();
  const file = join(program.data, "master.key");
  chmodSync(file, 0o644);
  expect(await onlyFault("secret files", program)).toContain(`${file} | run chmod 600 ${file}`);
  chmodSync(file, 0o600);
  writeFileSync(file, `${"0".repeat(64)}\n`);
  expect(await onlyFault("master key", program)).toContain("is not the key that stored secrets were encrypted with");
  writeFileSync(file, "no key\n");
  expect(await onlyFault("master key", program)).toContain("is not a master key");
  rmSync(file);
  expect(await onlyFault("master key", program)).toContain(
    "is missing, and stored secrets need it | put the right key",
  );
});

test("sds doctor sums up faults of shops: dead endpoints, expired tokens, missing scopes and old mirrors", async () => {
  const program = await Program.withShop();
  await program.json(["shop", "add", "beta.myshopify.com"]);
  const store = await program.openStore();
  const [alpha, beta] = await store.shops.list();
  if (alpha === undefined || beta === undefined) throw new Error("two shops were added");
  const hour = 3_600_000;
  const tokens = { accessToken: "shpat_secret", refreshToken: null, expiresAt: Date.now() - 1 };
  await store.connections.connect(alpha.id, "token", tokens, ["read_customers"], Date.now() - 4 * hour);
  await store.connections.connect(beta.id, "refresh", tokens, NEEDED_SCOPES, Date.now());
  await store.webhooks.set(alpha.id, { url: `https://127.0.0.1:${freePort()}/in?token=sesame` }, Date.now());
  // Nothing listens at the address of the platform, so its check fails too.
  const env = { SDS_EGRESS_ALLOW: "127.0.0.0/8", SDS_PLATFORM_URL: `http://127.0.0.1:${freePort()}/{shop}` };
  const failures = await failuresOf(program, env);
  expect(Object.fromEntries(Object.values(failures).map(({ check, detail }) => [check, detail]))).toEqual({
    "private addresses": expect.stringContaining("SDS_EGRESS_ALLOW is set"),
    platform: "the platform cannot be reached: the connection was refused",
    endpoints: expect.stringMatching(/^127\.0\.0\.1:\d+ of alpha\.myshopify\.com: the connection was refused$/),
    "access tokens": "the access token of alpha.myshopify.com has expired, and cannot be renewed",
    scopes: "alpha.myshopify.com without read_own_subscription_contracts, read_orders",
    mirror: "alpha.myshopify.com: not reconciled for three hours",
  });
  expect(JSON.stringify(failures)).not.toMatch(/sesame|shpat_/);
  await store.connections.setTrouble(beta.id, "the shop is frozen", Date.now());
  const { connections } = await failuresOf(program, env);
  expect(connections?.detail).toBe("beta.myshopify.com: the shop is frozen");
});

test("sds doctor finds a database of a newer program", async () => {
  const program = await Program.withShop();
  await program.setSchemaVersion(900);
  expect(await onlyFault("database", program)).toMatch(/newer sds \(schema 900.*\| install that version of sds/);
});

describe.skipIf(!isSqlite)("sds doctor finds, in a folder of SQLite,", () => {
  const asRoot = process.geteuid?.() === 0;

  test("that there is no data, and makes none", async () => {
    const program = new Program();
    expect(Object.keys(await failuresOf(program))).toEqual(["data folder", "disk", "database"]);
    expect(existsSync(program.data)).toBe(false);
  });

  test("files with a wrong mode or owner", async () => {
    const program = await Program.withShop();
    chmodSync(join(program.data, "sds.db"), 0o644);
    expect(await onlyFault("data folder", program)).toContain("sds.db: the mode");
    chmodSync(join(program.data, "sds.db"), 0o600);
    chmodSync(program.data, 0o777);
    expect(await onlyFault("data folder", program)).toContain(`${program.data}: the mode`);
    chmodSync(program.data, 0o702);
    expect(await onlyFault("data folder", program)).toContain(`${program.data}: the mode`);
    chmodSync(program.data, 0o755);
    expect(await failuresOf(program)).toEqual({});
    if (!asRoot) return;
    chownSync(join(program.data, "sds.db"), 12_345, 12_345);
    expect(await onlyFault("data folder", program)).toContain("sds.db: the owner is 12345");
  });

  test.skipIf(!asRoot)("what the owner of the folder may not read, also if root runs it", async () => {
    const above = temporaryFolder();
    for (const folder of [join(above, ".."), above]) chmodSync(folder, 0o755);
    const program = new Program(join(above, "data"));
    mkdirSync(program.data, { mode: 0o700 });
    chownSync(program.data, NOBODY, NOBODY);
    await program.json(["shop", "add", "alpha.myshopify.com"]);
    expect(await failuresOf(program)).toEqual({});
    const secret = join(above, "secret");
    writeFileSync(secret, "secret", { mode: 0o600 });
    const env = { SDS_PLATFORM_SECRET_FILE: secret };
    expect(await onlyFault("settings", program, env)).toContain(
      `${secret}, which root owns: run this as root, or change the owner`,
    );
    chownSync(secret, NOBODY, NOBODY);
    expect(await failuresOf(program, env)).toEqual({});
    writeFileSync(join(program.data, "sds.env"), "SDS_LOG=info\n", { mode: 0o600 });
    expect(await onlyFault("settings", program)).toContain("sds.env, which root owns");
    rmSync(join(program.data, "sds.env"));
    // Root may open this folder, but the owner of the file may not.
    const key = join(temporaryFolder(), "master.key");
    copyFileSync(join(program.data, "master.key"), key);
    chownSync(key, NOBODY, NOBODY);
    expect(await onlyFault("master key", program, { SDS_MASTER_KEY_FILE: key })).toContain("in a folder that");
  });

  test("that there was no backup for two days, until the next one", async () => {
    const program = await Program.withShop();
    const db = new Database(join(program.data, "sds.db"));
    db.run("UPDATE shops SET created_at = created_at - 200000000");
    db.close();
    expect(await onlyFault("backup", program)).toContain(
      "no backup for two days: sds knows no backup of this database",
    );
    await program.json(["backup", join(temporaryFolder(), "copy.db")]);
    expect(await failuresOf(program)).toEqual({});
  });

  test.skipIf(!canMount)("a disk that is almost full", async () => {
    const disk = mountDisk(8);
    if (disk === undefined) return;
    const program = new Program(join(disk, "data"));
    await program.json(["shop", "add", "alpha.myshopify.com"]);
    expect(await onlyFault("disk", program)).toContain(`free on the disk of ${program.data} | delete old databases`);
  });

  test("a database that is damaged, at its beginning and elsewhere", async () => {
    const program = await Program.withShop();
    const file = join(program.data, "sds.db");
    overwrite(file, 16_384 * 3);
    expect(await onlyFault("damage", program)).toMatch(/the database is damaged.*\S \| .*sds restore FILE/);
    overwrite(file, 0);
    expect(await onlyFault("database", program)).toContain("file is not a database | stop `sds serve`, and restore");
  });

  test("a log without its index, and an unfinished restore", async () => {
    const program = await Program.withShop();
    const server = await program.serve();
    const other = new Program(join(temporaryFolder(), "data"));
    await program.json(["shop", "add", "beta.myshopify.com"]);
    await server.stop("SIGKILL");
    rmSync(join(program.data, "sds.db-shm"));
    expect(await onlyFault("database", program)).toContain("a log without its index");
    await other.json(["shop", "add", "alpha.myshopify.com"]);
    writeFileSync(join(other.data, "sds.db.restored"), "");
    expect(await onlyFault("database", other)).toContain("has an unfinished restore");
  });

  test("an older schema, which it does not upgrade", async () => {
    const program = await Program.withShop();
    await program.setSchemaVersion(16);
    expect(await failuresOf(program)).toEqual({});
    const db = new Database(join(program.data, "sds.db"), { readonly: true });
    afterTest(() => db.close());
    expect(db.query("PRAGMA user_version").get()).toEqual({ user_version: 16 });
  });
});

describe.skipIf(isSqlite)("sds doctor finds, with PostgreSQL,", () => {
  test("nothing where it may only read", async () => {
    const program = await Program.withShop();
    await alterDatabase(program, "default_transaction_read_only = on");
    expect(await failuresOf(program)).toEqual({});
  });

  test("a server that accepts connections and says nothing", async () => {
    const program = await Program.withShop();
    using silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const url = `postgres://sds@127.0.0.1:${silent.port}/sds`;
    expect(await onlyFault("database", program, { SDS_DATABASE_URL: url })).toContain("does not answer");
  });

  test("a server that does not answer, without the password of its address", async () => {
    const program = await Program.withShop();
    const url = `postgres://sds:hunter2@127.0.0.1:${freePort()}/sds`;
    const found = await onlyFault("database", program, { SDS_DATABASE_URL: url });
    expect(found).toContain("there is no connection to postgres://127.0.0.1");
    expect(found).not.toContain("hunter2");
  });

  test("a server that loses commits in a power cut", async () => {
    const program = await Program.withShop();
    await alterDatabase(program, "synchronous_commit = off");
    expect(await onlyFault("durability", program)).toContain("the server has synchronous_commit=off");
  });
});

/** Changes a setting of the program's PostgreSQL database, for new connections. */
async function alterDatabase(program: Program, setting: string): Promise<void> {
  const url = new URL((await program.databaseUrl()) ?? "");
  const sql = new SQL(url.href, { max: 1 });
  await sql.unsafe(`ALTER DATABASE ${url.pathname.slice(1)} SET ${setting}`);
  await sql.close();
}

/** Destroys a page of a file. */
function overwrite(file: string, at: number): void {
  const fd = openSync(file, "r+");
  writeSync(fd, Buffer.alloc(16_384, 0x5a), 0, 16_384, at);
  closeSync(fd);
}
