import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Shop } from "../../src/domain/shop.ts";
import { temporaryFolder } from "../support/app.ts";
import { deadDelivery } from "../support/dead-delivery.ts";
import { failure, Program } from "../support/program.ts";

const DOMAIN = "alpha.myshopify.com";
const ISO = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
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

test("disconnect, clear and remove print JSON too", async () => {
  const program = await Program.withShop();
  expect(await program.json<object>(["webhook", "clear"])).toEqual({ url: null, topics: [] });
  expect(await program.json<object>(["shop", "remove", "alpha.myshopify.com", "--yes"])).toEqual({
    domain: "alpha.myshopify.com",
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
