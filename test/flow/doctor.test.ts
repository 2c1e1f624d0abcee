import { describe, expect, test } from "bun:test";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { NEEDED_SCOPES } from "../../src/domain/platform/connection.ts";
import { PlatformProcess } from "../support/platform-process.ts";
import { freePort } from "../support/postgres-process.ts";
import { ENGINE, Program } from "../support/program.ts";
import { failuresOf, onlyFault, PORT } from "./doctor-results.ts";

const isSqlite = ENGINE === "sqlite";

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
