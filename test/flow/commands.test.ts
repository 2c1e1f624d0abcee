import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Shop } from "../../src/domain/shop.ts";
import { temporaryFolder } from "../support/app.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { failure, Program } from "../support/program.ts";

const DOMAIN = "alpha.myshopify.com";
const ISO = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const WAYS = "with one of --client-credentials, --app-key-file, --token-stdin and --refresh-token-stdin";
const NO_DOMAIN = "is not a shop's domain: write it in lower case as the platform does, like alpha.myshopify.com";
const LABEL = "the label must have 1 to 200 characters and no control or invisible characters";
const KEY = /^cad_pk_[0-9a-f]{48}$/;

const NOTHING = "0 API keys, 0 subscriptions, 0 orders, 0 customers and its delivery log";

describe("shop", () => {
  test("is added, listed, shown, changed, and removed only with --yes", async () => {
    const program = new Program();
    const added = await program.json(["shop", "add", DOMAIN]);
    expect(added).toEqual({ domain: DOMAIN, plan: "pro", currency: "USD", createdAt: expect.stringMatching(ISO) });
    expect(await program.json<unknown>(["shop", "list"])).toEqual([added]);
    expect(await program.json(["shop", "set", DOMAIN, "--plan", "free+addon", "--currency", "EUR"])).toEqual({
      ...added,
      plan: "free+addon",
      currency: "EUR",
    });
    expect(await program.json(["shop", "show", DOMAIN])).toEqual({ ...added, plan: "free+addon", currency: "EUR" });
    expect(await program.run(["shop", "remove", DOMAIN])).toEqual(
      failure(2, `this removes ${DOMAIN} with ${NOTHING}: add --yes to do it`),
    );
    expect(await program.run(["shop", "remove", DOMAIN, "--yes"])).toMatchObject({ status: 0, stdout: "" });
    expect(await program.json<unknown>(["shop", "list"])).toEqual([]);
  });

  test("shows the new settings after a change", async () => {
    const program = new Program();
    const added = await program.json(["shop", "add", DOMAIN]);
    const set = ["shop", "set", DOMAIN, "--retry-days", "2,4", "--credit-title", "Kredit"];
    expect(await program.json(set)).toEqual({ ...added, retryDays: [2, 4], creditTitle: "Kredit" });
    const { stdout } = await program.run(["shop", "set", DOMAIN, "--triggers", "none", "--retry-days", "1"]);
    expect(stdout).toMatch(/^retryDays +1\ntriggers +none\n/m);
    expect(stdout).not.toContain("Kredit");
  });

  test("is not added twice, and an unknown shop is not found", async () => {
    const program = await Program.withShop();
    expect(await program.run(["shop", "add", DOMAIN])).toEqual(failure(1, `the shop ${DOMAIN} exists already`));
    for (const args of [["show"], ["set", "--plan", "pro"], ["remove", "--yes"]]) {
      const [verb = "", ...flags] = args;
      expect(await program.run(["shop", verb, "beta.myshopify.com", ...flags])).toEqual(
        failure(3, "there is no shop beta.myshopify.com"),
      );
    }
  });
});

describe("key", () => {
  test("create prints only the key, once, and stores only its hash", async () => {
    const program = await Program.withShop();
    const { stdout, stderr, status } = await program.run(["key", "create", "--label", "Warehouse"]);
    const key = stdout.trimEnd();
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: "This is the key Warehouse. Save it now: only its hash is stored here, so it cannot be shown again.\n",
    });
    expect(key).toMatch(KEY);
    expect(stdout).toBe(`${key}\n`);
    const list = await program.json<unknown>(["key", "list"]);
    expect(list).toEqual([
      {
        id: expect.stringMatching(/^key_/),
        label: "Warehouse",
        fingerprint: key.slice(0, 15),
        createdAt: expect.stringMatching(ISO),
        lastUsedAt: null,
        legacy: false,
        createdBy: "command line",
      },
    ]);
    for (const text of [key, key.slice(7)]) expect(await program.holds(text)).toBe(false);
    expect(await program.holds(key.slice(0, 15))).toBe(true);
  });

  test("create, import and revoke with --json print exactly the documented fields", async () => {
    const program = await Program.withShop();
    const made = await program.json<{ id: string; key: string }>(["key", "create", "--label", "A"]);
    expect(Object.keys(made)).toEqual(["id", "key", "label", "fingerprint", "createdAt"]);
    const legacy = `cad_pk_${"ab".repeat(24)}`;
    const imported = await program.json<{ id: string }>(["key", "import", "--label", "Old CRM", "--legacy"], {
      stdin: `${legacy}\n`,
    });
    expect(Object.keys(imported)).toEqual(["id", "label", "fingerprint", "createdAt"]);
    expect(await program.json<unknown>(["key", "list"])).toMatchObject([
      { id: made.id, legacy: false },
      { id: imported.id, legacy: true },
    ]);
    expect(await program.json(["key", "revoke", "cad_pk_abababab"])).toEqual({
      id: imported.id,
      revokedAt: expect.stringMatching(ISO),
    });
    expect(await program.json(["key", "revoke", made.id])).toEqual({
      id: made.id,
      revokedAt: expect.stringMatching(ISO),
    });
    expect((await program.run(["key", "revoke", made.id])).status).toBe(3);
    // A revoked key cannot be imported again under another label.
    expect((await program.run(["key", "import", "--label", "Again", "--legacy"], { stdin: legacy })).status).toBe(1);
  });

  test("revoke refuses a fingerprint that several keys share", async () => {
    const program = await Program.withShop();
    for (const end of ["00", "11"])
      await program.json(["key", "import", "--label", end, "--legacy"], { stdin: `cad_pk_${"ab".repeat(23)}${end}` });
    const { status, stderr } = await program.run(["key", "revoke", "cad_pk_abababab"]);
    expect(status).toBe(2);
    expect(stderr).toMatch(/^sds: several keys begin with cad_pk_abababab: name one by its id \(key_\w+, key_\w+\)\n$/);
    expect(await program.json<unknown[]>(["key", "list"])).toHaveLength(2);
  });

  test("list and revoke do not reach another shop's keys", async () => {
    const program = new Program();
    for (const domain of [DOMAIN, "beta.myshopify.com"]) await program.json(["shop", "add", domain]);
    const { id } = await program.json<{ id: string }>(["key", "create", "--label", "A", "--shop", DOMAIN]);
    expect(await program.json<unknown[]>(["key", "list", "--shop", "beta.myshopify.com"])).toEqual([]);
    expect((await program.run(["key", "revoke", id, "--shop", "beta.myshopify.com"])).status).toBe(3);
  });
});

describe("--shop", () => {
  test("can be left out if there is one shop, and is required if there are several", async () => {
    const program = new Program();
    const create = () => program.run(["key", "create", "--label", "A"]);
    await program.json(["shop", "add", DOMAIN]);
    await program.run(["shop", "remove", DOMAIN, "--yes"]);
    expect(await create()).toEqual(failure(3, "there is no shop yet: add one with `sds shop add alpha.myshopify.com`"));
    await program.json(["shop", "add", DOMAIN]);
    expect((await create()).status).toBe(0);
    await program.json(["shop", "add", "beta.myshopify.com"]);
    expect(await create()).toEqual(
      failure(2, `there are 2 shops: say which with --shop, for instance --shop ${DOMAIN}`),
    );
    expect((await program.run(["key", "list", "--shop", "gamma.myshopify.com"])).status).toBe(3);
  });

  test("is SDS_SHOP by default", async () => {
    const program = new Program();
    for (const domain of [DOMAIN, "beta.myshopify.com"]) await program.json(["shop", "add", domain]);
    const env = { SDS_SHOP: "beta.myshopify.com" };
    await program.json(["key", "create", "--label", "Beta"], { env });
    const labels = async (...args: string[]) =>
      (await program.json<{ label: string }[]>(["key", "list", ...args], { env })).map(({ label }) => label);
    expect(await labels()).toEqual(["Beta"]);
    expect(await labels("--shop", DOMAIN)).toEqual([]);
    expect((await program.run(["sync"], { env })).stderr).toBe(
      "sds: beta.myshopify.com is not connected: connect it with `sds shop connect beta.myshopify.com`\n",
    );
    expect((await program.run(["key", "list"], { env: { SDS_SHOP: "gamma.myshopify.com" } })).status).toBe(3);
  });
});

describe("usage", () => {
  test.each([
    [["shop", "add", DOMAIN, "--plam", "pro"], "unknown option '--plam' (Did you mean --plan?)"],
    [["shop", "lst"], "unknown command 'lst' (Did you mean list?)"],
    [["shop", "add"], "missing required argument 'domain'; usage: sds shop add [options] <domain>"],
    [["shop", "add", "a.myshopfy.com"], '"a.myshopfy.com" is not a shop\'s domain: did you mean a.myshopify.com?'],
    [
      ["shop", "add", DOMAIN, "more"],
      "too many arguments for 'add'. Expected 1 argument but got 2: alpha.myshopify.com, more.",
    ],
    [["shop", "add", "Alpha.myshopify.com"], `"Alpha.myshopify.com" ${NO_DOMAIN}`],
    [["shop", "add", "alpha"], `"alpha" ${NO_DOMAIN}`],
    [["shop", "connect", "Alpha", "--client-credentials"], `"Alpha" ${NO_DOMAIN}`],
    [["shop", "add", DOMAIN, "--plan", "gold"], '"gold" is not a plan: choose pro, free, free+addon'],
    [["shop", "add", DOMAIN, "--currency", "usd"], '"usd" is not a currency: write its ISO 4217 code, like USD'],
    [["shop", "set", DOMAIN], "say what to change: --plan, --currency, --retry-days, --credit-title or --triggers"],
    [["key", "create"], "required option '--label <text>' not specified; usage: sds key create [options]"],
    [["key", "create", "--label", " "], LABEL],
    [["key", "create", "--label", "a\u001b[31m"], LABEL],
    [["key", "import", "--label", "A", "--legacy"], "the key must be cad_pk_ and 48 lower-case hexadecimal digits"],
    [["shop", "connect", DOMAIN, "--client-credentials", "--token-stdin"], `say how to connect: ${WAYS}`],
    [["shop", "connect", DOMAIN], `say how to connect: ${WAYS}`],
    [["shop", "connect", DOMAIN, "--token-stdin"], "stdin has no token: it must be one line without spaces"],
    [["delivery", "retry"], "name one delivery by its id, or use --dead"],
    [["delivery", "retry", "whd_x", "--dead"], "name one delivery by its id, or use --dead"],
    [["delivery", "retry", "whd_x", "--since", "1h"], "--since and --yes can only be used with --dead"],
    [["delivery", "retry", "whd_x", "--yes"], "--since and --yes can only be used with --dead"],
    [
      ["delivery", "retry", "--dead", "--since", "x"],
      '--since is "x": it must be a date like 2026-01-31T09:30:00Z or an age like 2h',
    ],
    [["delivery", "list", "--limit", "0"], '--limit is "0": it must be a whole number from 1 to 10000'],
    [["delivery", "list", "--status", "x"], '--status is "x": it must be one of pending, retrying, delivered, dead'],
    [["delivery", "list", "--kind", "x"], '--kind is "x": it must be one of webhook, trigger'],
    [["inbox", "retry"], "name one item of the inbox by its id, or use --failed"],
    [["sync", "--since", "1h", "--events"], "--since always queues events: leave out --events"],
    [["sync", "--since", "1h", "--pages"], "--since always reads pages: leave out --pages"],
    [["inbox", "retry", "1", "--failed"], "name one item of the inbox by its id, or use --failed"],
    [["listen", "--port", "65536"], '--port is "65536": it must be a port from 0 to 65535'],
    [["listen", "--forward", "nowhere"], '--forward is "nowhere": it must be a URL'],
    [["customer", "export", "ada"], '"ada" is not a customer\'s gid: write it like gid://shopify/Customer/7'],
    [
      ["platform", "files", "app", "--url", "http://sds.example.com"],
      '--url is "http://sds.example.com": it must be an https address, like https://sds.example.com',
    ],
    [["serve", "--port", "http"], '--port is "http": it must be a port from 0 to 65535'],
    [["serve", "--port", "65536"], '--port is "65536": it must be a port from 0 to 65535'],
    [["--data", "", "shop", "list"], "--data is empty"],
  ])("%j ends with 2", async (args, message) => {
    expect(await new Program().run(args)).toEqual(failure(2, message));
  });

  test.each([
    ["SDS_PORT", "x", 'SDS_PORT is "x": it must be a port from 0 to 65535'],
    ["SDS_LOG", "loud", 'SDS_LOG is "loud": it must be one of debug, info, warn, error'],
    [
      "SDS_PLATFORM_SECRET_FILE",
      "/nowhere/at/all",
      "SDS_PLATFORM_SECRET_FILE cannot be read: /nowhere/at/all does not exist: check the path",
    ],
    ["SDS_DATA", "", "SDS_DATA is empty"],
  ])("%s=%s ends with 2", async (name, value, message) => {
    expect(await new Program().run(["serve"], { env: { [name]: value } })).toEqual(failure(2, message));
  });

  test("help has no colours if stdout is not a terminal, and a command line without a command ends with 2", async () => {
    const program = new Program();
    const { status, stdout, stderr } = await program.run(["shop", "add", "--help"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toContain("$ sds shop add");
    expect(stdout).not.toContain("\u001b");
    for (const args of [[], ["shop"]]) expect((await program.run(args)).status).toBe(2);
  });
});

test("with --json an error is also JSON on stdout, and the line on stderr stays", async () => {
  const program = await Program.withShop();
  for (const [args, code, status, message] of [
    [["key", "revoke", "cad_pk_0000", "--json"], "not_found", 3, "there is no key cad_pk_0000"],
    [["delivery", "list", "--limit", "x", "--json"], "invalid", 2, '--limit is "x"'],
    [["key", "create", "--json"], "invalid", 2, "required option '--label <text>' not specified"],
    [
      ["shop", "remove", "beta.myshopify.com", "--yes", "--json"],
      "not_found",
      3,
      "there is no shop beta.myshopify.com",
    ],
  ] as const) {
    const result = await program.run([...args]);
    const { error } = JSON.parse(result.stdout);
    expect({ ...result, stdout: error.code }).toEqual({ status, stdout: code, stderr: `sds: ${error.message}\n` });
    expect(error.message).toStartWith(message);
  }
});

test("disconnect, clear and remove print JSON too", async () => {
  const program = await Program.withShop();
  expect(await program.json<object>(["webhook", "clear"])).toEqual({ url: null, topics: [] });
  expect(await program.json<object>(["shop", "remove", "alpha.myshopify.com", "--yes"])).toEqual({
    domain: "alpha.myshopify.com",
  });
});

test("help names a command in one word or more", async () => {
  const program = await Program.withShop();
  const { stdout } = await program.run(["help", "webhook", "set"]);
  expect(stdout).toStartWith("Usage: sds webhook set");
  expect(await program.run(["webhook", "set", "--help"])).toEqual({ status: 0, stdout, stderr: "" });
});

test("version prints the versions of the program, of Bun and of SQLite", async () => {
  const program = new Program();
  expect(await program.json(["version"])).toEqual({
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    bun: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    sqlite: expect.stringMatching(/^3\.\d+\.\d+$/),
  });
});

describe("a data folder that cannot be used ends with 1 and one line", () => {
  test("because a newer sds wrote the database", async () => {
    const program = await Program.withShop();
    await program.setSchemaVersion(99);
    const { status, stderr } = await program.run(["serve", "--port", "0"]);
    expect({ status, lines: stderr.trim().split("\n").length }).toEqual({ status: 1, lines: 1 });
    expect(stderr).toContain("was written by a newer sds");
  });

  test("because it is a file", async () => {
    const file = join(temporaryFolder(), "file");
    writeFileSync(file, "");
    const { status, stderr } = await new Program(file).run(["shop", "list"]);
    expect({ status, begin: stderr.slice(0, 33) }).toEqual({ status: 1, begin: "sds: cannot use the data folder /" });
  });

  test("because sds.db is not a database", async () => {
    const folder = temporaryFolder();
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "sds.db"), "no database".repeat(1000));
    chmodSync(join(folder, "sds.db"), 0o600);
    const { status, stderr } = await new Program(folder).run(["shop", "list"]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^sds: cannot open the database .*: file is not a database\n$/);
  });
});

test("a misspelt topic or shop is refused with the one that was probably meant", async () => {
  const program = await Program.withShop();
  const topics = ["webhook", "set", "--topics", "order.charge"];
  expect((await program.run(topics)).stderr).toContain('"order.charge" is not a topic (did you mean order.charged?)');
  expect(await program.run(["shop", "show", "alhpa.myshopify.com"])).toEqual(
    failure(3, `there is no shop alhpa.myshopify.com (did you mean ${DOMAIN}?)`),
  );
});

test("a key and a delivery are found by their ids if there are several shops", async () => {
  const program = await Program.withShop();
  await program.json(["shop", "add", "beta.myshopify.com"]);
  const create = (shop: string) =>
    program.json<{ id: string; fingerprint: string }>(["key", "create", "--label", "A", "--shop", shop]);
  const [one, other, third] = [await create(DOMAIN), await create("beta.myshopify.com"), await create(DOMAIN)];
  expect(await program.json(["key", "revoke", other.id])).toMatchObject({
    id: other.id,
  });
  expect(await program.json(["key", "revoke", third.fingerprint])).toMatchObject({ id: third.id });
  const elsewhere = await program.run(["key", "revoke", one.id], {
    env: { SDS_SHOP: "beta.myshopify.com" },
  });
  expect(elsewhere.status).toBe(3);
  expect((await program.run(["key", "revoke", "key_unknown"])).stderr).toContain("there are 2 shops: say which");

  const store = await program.openStore();
  const shop = await store.shops.find("beta.myshopify.com");
  const id = await deadDelivery(store, shop as Shop);
  await store.close();
  expect(await program.json(["delivery", "show", id])).toMatchObject({
    id,
    status: "dead",
  });
  expect(await program.json(["delivery", "retry", id])).toMatchObject({
    id,
    status: "pending",
  });
});
