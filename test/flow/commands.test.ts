import { Database } from "bun:sqlite";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { Program } from "../support/program.ts";
import { customer, order, subscription } from "../support/records.ts";

// Starting programs takes time on a busy machine.
setDefaultTimeout(30_000);

const DOMAIN = "alpha.myshopify.com";
const ISO = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
const KEY = /^cad_pk_[0-9a-f]{48}$/;

describe("shop", () => {
  test("add, list, show, set, remove", async () => {
    const program = new Program();
    const added = await program.json(["shop", "add", DOMAIN]);
    expect(added).toEqual({ domain: DOMAIN, plan: "pro", currency: "USD", createdAt: expect.stringMatching(ISO) });
    expect(await program.json<unknown>(["shop", "list"])).toEqual([added]);
    expect(await program.json(["shop", "set", DOMAIN, "--plan", "free+addon", "--currency", "EUR"])).toEqual({ ...added, plan: "free+addon", currency: "EUR" });
    expect(await program.json(["shop", "show", DOMAIN])).toEqual({ ...added, plan: "free+addon", currency: "EUR" });
    expect(await program.run(["shop", "remove", DOMAIN])).toMatchObject({ status: 2, stdout: "" });
    expect(await program.run(["shop", "remove", DOMAIN, "--yes"])).toMatchObject({ status: 0, stdout: "" });
    expect(await program.json<unknown>(["shop", "list"])).toEqual([]);
  });

  test("one that exists is not added again, and one that does not exist is no such thing", async () => {
    const program = new Program();
    await program.json(["shop", "add", DOMAIN]);
    expect(await program.run(["shop", "add", DOMAIN])).toEqual({ status: 1, stdout: "", stderr: `sds: the shop ${DOMAIN} exists already\n` });
    for (const args of [["show"], ["set", "--plan", "pro"], ["remove", "--yes"]]) {
      const [verb = "", ...flags] = args;
      expect(await program.run(["shop", verb, "beta.myshopify.com", ...flags])).toEqual({
        status: 3,
        stdout: "",
        stderr: "sds: there is no shop beta.myshopify.com\n",
      });
    }
  });
});

describe("key", () => {
  test("create prints the key alone and once; only its hash is stored", async () => {
    const program = new Program();
    await program.json(["shop", "add", DOMAIN]);
    const { stdout, status } = await program.run(["key", "create", "--label", "Warehouse"]);
    const key = stdout.trimEnd();
    expect(status).toBe(0);
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
      },
    ]);
    const database = await Bun.file(join(program.data, "sds.db")).text();
    expect(database).not.toContain(key);
    expect(database).not.toContain(key.slice(7));
  });

  test("create --json, import and revoke print what the contract says", async () => {
    const program = new Program();
    await program.json(["shop", "add", DOMAIN]);
    const made = await program.json<{ id: string; key: string }>(["key", "create", "--label", "A"]);
    expect(Object.keys(made)).toEqual(["id", "key", "label", "fingerprint", "createdAt"]);
    const legacy = `cad_pk_${"ab".repeat(24)}`;
    const imported = await program.json<{ id: string }>(["key", "import", "--label", "Old CRM", "--legacy"], { stdin: `${legacy}\n` });
    expect(Object.keys(imported)).toEqual(["id", "label", "fingerprint", "createdAt"]);
    expect(await program.json<unknown>(["key", "list"])).toMatchObject([
      { id: made.id, legacy: false },
      { id: imported.id, legacy: true },
    ]);
    expect(await program.json(["key", "revoke", "cad_pk_abababab"])).toEqual({ id: imported.id, revokedAt: expect.stringMatching(ISO) });
    expect(await program.json(["key", "revoke", made.id])).toEqual({ id: made.id, revokedAt: expect.stringMatching(ISO) });
    expect((await program.run(["key", "revoke", made.id])).status).toBe(3);
    // A revoked key does not come back under another name.
    expect((await program.run(["key", "import", "--label", "Again", "--legacy"], { stdin: legacy })).status).toBe(1);
  });

  test("a fingerprint that fits several keys revokes none", async () => {
    const program = new Program();
    await program.json(["shop", "add", DOMAIN]);
    for (const end of ["00", "11"]) await program.json(["key", "import", "--label", end, "--legacy"], { stdin: `cad_pk_${"ab".repeat(23)}${end}` });
    const { status, stderr } = await program.run(["key", "revoke", "cad_pk_abababab"]);
    expect(status).toBe(2);
    expect(stderr).toMatch(/^sds: several keys begin with cad_pk_abababab: name one by its id \(key_\w+, key_\w+\)\n$/);
    expect(await program.json<unknown[]>(["key", "list"])).toHaveLength(2);
  });

  test("another shop's key is not to be seen or revoked", async () => {
    const program = new Program();
    for (const domain of [DOMAIN, "beta.myshopify.com"]) await program.json(["shop", "add", domain]);
    const { id } = await program.json<{ id: string }>(["key", "create", "--label", "A", "--shop", DOMAIN]);
    expect(await program.json<unknown[]>(["key", "list", "--shop", "beta.myshopify.com"])).toEqual([]);
    expect((await program.run(["key", "revoke", id, "--shop", "beta.myshopify.com"])).status).toBe(3);
  });
});

describe("--shop", () => {
  test("may be left out where there is one shop, and has to be there where there are several", async () => {
    const program = new Program();
    const create = () => program.run(["key", "create", "--label", "A"]);
    expect(await create()).toEqual({ status: 3, stdout: "", stderr: "sds: there is no shop yet: add one with `sds shop add alpha.myshopify.com`\n" });
    await program.json(["shop", "add", DOMAIN]);
    expect((await create()).status).toBe(0);
    await program.json(["shop", "add", "beta.myshopify.com"]);
    expect(await create()).toEqual({ status: 2, stdout: "", stderr: `sds: there are 2 shops: say which with --shop, for instance --shop ${DOMAIN}\n` });
    expect((await program.run(["key", "list", "--shop", "gamma.myshopify.com"])).status).toBe(3);
  });
});

describe("import", () => {
  async function prepared(lines: (object | string)[]) {
    const program = new Program();
    await program.json(["shop", "add", DOMAIN]);
    const file = join(temporaryFolder(), "records.ndjson");
    writeFileSync(file, lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n"));
    return { program, file };
  }
  const customers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => customer(from + n));

  test("reads a file, says what changed, and says nothing changed the second time", async () => {
    const { program, file } = await prepared([subscription(1), "", order(1, 1), customer(1)]);
    expect(await program.json(["import", file])).toEqual({ read: 3, changed: 2, events: 0 });
    expect(await program.run(["import", file])).toEqual({ status: 0, stdout: "read 3, changed 0, events 0\n", stderr: "" });
  });

  test("is all or nothing per 1,000 lines, and a bad line stops it with its number", async () => {
    const { program, file } = await prepared([...customers(1, 1499), '{"type":"customer","shopifyId":', ...customers(1501, 1600)]);
    const { status, stdout, stderr } = await program.run(["import", file]);
    expect({ status, stdout, stderr }).toEqual({
      status: 2,
      stdout: "",
      stderr: "sds: line 1500: the record is not valid JSON; lines 1 to 1000 were imported, the rest was not\n",
    });
    const db = new Database(join(program.data, "sds.db"), { readonly: true });
    expect(db.query("SELECT count(*) AS n FROM customers").get()).toEqual({ n: 1000 });
    db.close();
  });

  test.each([
    ["a field", [customer(1), { ...customer(2), email: 5 }], "line 2: field email must be a string of at most 1024 characters, or null; nothing was imported"],
    [
      "an order for no contract",
      [customer(1), "", order(7, 1)],
      "line 3: field subscription names a contract that is not in the mirror: gid://shopify/SubscriptionContract/7; nothing was imported",
    ],
  ])("names %s", async (_name, lines, message) => {
    const { program, file } = await prepared(lines);
    expect(await program.run(["import", file])).toEqual({ status: 2, stdout: "", stderr: `sds: ${message}\n` });
  });

  test("bytes that are no UTF-8 are refused by line", async () => {
    const { program } = await prepared([]);
    const stdin = Uint8Array.from(Buffer.concat([Buffer.from(`${JSON.stringify(customer(1))}\n`), Uint8Array.of(0x22, 0xff, 0x22, 0x0a)]));
    expect(await program.run(["import", "-"], { stdin })).toEqual({
      status: 2,
      stdout: "",
      stderr: "sds: line 2: the record is not UTF-8; nothing was imported\n",
    });
  });

  test("and what came before such a line is told like before any other", async () => {
    const { program } = await prepared([]);
    const good = customers(1, 2399).map((record) => JSON.stringify(record));
    const stdin = Uint8Array.from(Buffer.concat([Buffer.from(`${good.join("\n")}\n`), Uint8Array.of(0xff, 0x0a)]));
    expect(await program.run(["import", "-"], { stdin })).toEqual({
      status: 2,
      stdout: "",
      stderr: "sds: line 2400: the record is not UTF-8; lines 1 to 2000 were imported, the rest was not\n",
    });
  });

  test("no file is no such thing, a folder is none", async () => {
    const { program } = await prepared([]);
    expect((await program.run(["import", "missing.ndjson"])).status).toBe(3);
    expect((await program.run(["import", temporaryFolder()])).status).toBe(2);
  });
});

describe("usage", () => {
  test.each([
    [["shop", "add", DOMAIN, "--plam", "pro"], "unknown option '--plam' (Did you mean --plan?)"],
    [["shop", "lst"], "unknown command 'lst' (Did you mean list?)"],
    [["shop", "add"], "missing required argument 'domain'"],
    [["shop", "add", DOMAIN, "more"], "too many arguments for 'add'. Expected 1 argument but got 2: alpha.myshopify.com, more."],
    [
      ["shop", "add", "Alpha.myshopify.com"],
      '"Alpha.myshopify.com" is not a shop\'s domain: write it in lower case as the platform does, like alpha.myshopify.com',
    ],
    [["shop", "add", "alpha"], '"alpha" is not a shop\'s domain: write it in lower case as the platform does, like alpha.myshopify.com'],
    [["shop", "add", DOMAIN, "--plan", "gold"], '"gold" is not a plan: choose pro, free, free+addon'],
    [["shop", "add", DOMAIN, "--currency", "usd"], '"usd" is not a currency: write its ISO 4217 code, like USD'],
    [["shop", "set", DOMAIN], "say what to change: --plan, --currency, --retry-days, --credit-title or --triggers"],
    [["key", "create"], "required option '--label <text>' not specified"],
    [["key", "create", "--label", " "], "the label must have 1 to 200 characters and no control or invisible characters"],
    [["key", "create", "--label", "a\u001b[31m"], "the label must have 1 to 200 characters and no control or invisible characters"],
    [["key", "import", "--label", "A", "--legacy"], "stdin holds no API key: it should be cad_pk_ and 48 lower-case hexadecimal digits"],
    [["serve", "--port", "http"], '--port is "http": it must be a port from 0 to 65535'],
    [["serve", "--port", "65536"], '--port is "65536": it must be a port from 0 to 65535'],
    [["--data", "", "shop", "list"], "--data is empty"],
  ])("%j ends with 2", async (args, message) => {
    expect(await new Program().run(args)).toEqual({ status: 2, stdout: "", stderr: `sds: ${message}\n` });
  });

  test.each([
    ["SDS_PORT", "x", 'SDS_PORT is "x": it must be a port from 0 to 65535'],
    ["SDS_LOG", "loud", 'SDS_LOG is "loud": it must be one of debug, info, warn, error'],
    ["SDS_PLATFORM_SECRET_FILE", "/nowhere/at/all", "SDS_PLATFORM_SECRET_FILE cannot be read: ENOENT: no such file or directory, open '/nowhere/at/all'"],
    ["SDS_DATA", "", "SDS_DATA is empty"],
  ])("%s=%s ends with 2", async (name, value, message) => {
    expect(await new Program().run(["serve"], { env: { [name]: value } })).toEqual({ status: 2, stdout: "", stderr: `sds: ${message}\n` });
  });

  test("every command has help with an example, without colour when it is no terminal", async () => {
    const program = new Program();
    const nouns: Record<string, string[]> = {
      shop: ["add", "list", "show", "set", "connect", "disconnect", "remove"],
      key: ["create", "import", "list", "revoke"],
      admin: ["link", "sign-out"],
      intake: ["secret"],
      serve: [],
      demo: [],
      import: [],
      version: [],
    };
    const commands = [[], ...Object.entries(nouns).flatMap(([noun, verbs]) => [[noun], ...verbs.map((verb) => [noun, verb])])];
    const helps = await Promise.all(commands.map((command) => program.run([...command, "--help"])));
    for (const { status, stdout, stderr } of helps) {
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(stdout).toContain("$ sds ");
      expect(stdout).not.toContain("\u001b");
    }
    expect((await program.run([])).status).toBe(2);
    expect((await program.run(["shop"])).status).toBe(2);
  });
});

test("version", async () => {
  const program = new Program();
  expect(await program.json(["version"])).toEqual({
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    bun: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    sqlite: expect.stringMatching(/^3\.\d+\.\d+$/),
  });
});

describe("a data folder that cannot be used ends with 1 and one line", () => {
  test("a newer database", async () => {
    const program = new Program();
    await program.json(["shop", "list"]);
    const db = new Database(join(program.data, "sds.db"));
    db.run("PRAGMA user_version = 99");
    db.close();
    const { status, stderr } = await program.run(["serve", "--port", "0"]);
    expect({ status, lines: stderr.trim().split("\n").length }).toEqual({ status: 1, lines: 1 });
    expect(stderr).toContain("was written by a newer sds");
  });

  test("a file in its place", async () => {
    const file = join(temporaryFolder(), "file");
    writeFileSync(file, "");
    const { status, stderr } = await new Program(file).run(["shop", "list"]);
    expect({ status, begin: stderr.slice(0, 33) }).toEqual({ status: 1, begin: "sds: cannot use the data folder /" });
  });

  test("a database that is none", async () => {
    const folder = temporaryFolder();
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "sds.db"), "no database".repeat(1000));
    chmodSync(join(folder, "sds.db"), 0o600);
    const { status, stderr } = await new Program(folder).run(["shop", "list"]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^sds: cannot open the database .*: file is not a database\n$/);
  });
});
