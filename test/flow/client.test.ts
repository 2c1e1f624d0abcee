import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { $ } from "bun";
import { version } from "../../package.json";
import { apiShop } from "../support/api-shop.ts";
import { clientProject, EXAMPLES, runIn, startIn } from "../support/client-project.ts";
import { FakeApi } from "../support/fake-api.ts";
import { isCompiled } from "../support/program.ts";
import { customer, fieldValue, order } from "../support/records.ts";

const TOP = join(import.meta.dir, "../..");

test("the package has modules, types and no dependencies, and its examples compile", async () => {
  const folder = await clientProject();
  const installed = join(folder, "node_modules/sds-client");
  expect(JSON.parse(readFileSync(join(installed, "package.json"), "utf8"))).toMatchObject({
    name: "sds-client",
    version,
    type: "module",
  });
  expect(readFileSync(join(installed, "package.json"), "utf8")).not.toMatch(/dependencies/i);
  const files = readdirSync(installed).sort();
  for (const file of ["LICENSE", "README.md", "index.js", "index.d.ts", "file-store.js", "file-store.d.ts"])
    expect(files).toContain(file);
  const foreign = files
    .filter((file) => /\.[jt]s$/.test(file))
    .flatMap((file) => [...readFileSync(join(installed, file), "utf8").matchAll(/ from "([^"]+)"/g)])
    .map(([, from = ""]) => from)
    .filter((from) => !/^\.\/[\w-]+\.js$/.test(from));
  expect(new Set(foreign)).toEqual(new Set(["node:fs/promises", "node:path"]));
  const flags =
    "--ignoreConfig --noEmit --strict --allowJs --checkJs --module NodeNext --lib ES2023,DOM --target ES2022".split(
      " ",
    );
  const types = ["--typeRoots", join(TOP, "node_modules/@types"), "--types", "node"];
  const { stdout } = await $`bunx tsc ${flags} ${types} ${[...EXAMPLES.keys()].map((name) => join(folder, name))}`
    .cwd(TOP)
    .nothrow()
    .quiet();
  expect(stdout.toString()).toBe("");
});

test.skipIf(!isCompiled)("the executable serves the package, without a key", async () => {
  const { server } = await apiShop(0);
  const response = await fetch(`${server.url}/docs/sds-client.tgz`);
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/gzip"]);
  const folder = await clientProject();
  const served = await $`tar -xzO < ${response}`.quiet();
  const built = await $`tar -xzOf ${join(folder, "built", `sds-client-${version}.tgz`)}`.quiet();
  expect(served.stdout.equals(built.stdout)).toBe(true);
});

describe("the examples in the package's README, under Node, against the program:", () => {
  test("read.mjs and errors.mjs", async () => {
    const { server, key } = await apiShop(3);
    const folder = await clientProject();
    const env = { API_URL: server.url, API_KEY: key };
    const read = await runIn(folder, ["node", "read.mjs"], env);
    expect({ ...read, stdout: read.stdout.replaceAll(/sub_[a-z2-7]{24}/g, "sub_…") }).toEqual({
      status: 0,
      stdout: `${"sub_… 2026-02-01T00:00:00.000Z\n".repeat(3)}null\n3 orders\n`,
      stderr: "",
    });
    const { stdout, stderr, status } = await runIn(folder, ["node", "errors.mjs"], env);
    expect({ stdout, stderr, status }).toEqual({
      stdout: expect.stringMatching(/^401 unauthorized /),
      stderr: "",
      status: 0,
    });
  });

  test("fields.mjs", async () => {
    const { program, server, key, load } = await apiShop(2);
    await program.json(["field", "add", "gift_note", "--label", "Gift note", "--type", "text"]);
    await load([fieldValue(2, "gift_note", "Hi")]);
    const { stdout, stderr } = await runIn(await clientProject(), ["node", "fields.mjs"], {
      API_URL: server.url,
      API_KEY: key,
    });
    expect([...stdout.split("\n").toSorted(), stderr]).toEqual([
      "",
      "gid://shopify/SubscriptionContract/1 {}",
      "gid://shopify/SubscriptionContract/2 { gift_note: 'Hi' }",
      "new or changed: 2, in all: 2",
      "",
    ]);
  });

  test("copies and changes.mjs, before and after changes, and after serve was killed", async () => {
    const shop = await apiShop(3);
    const folder = await clientProject();
    const run = (name: string, more: Record<string, string> = {}) =>
      runIn(folder, ["node", name], { API_URL: shop.server.url, API_KEY: shop.key, ...more });
    expect((await run("client-copy.mjs")).stdout).toBe("new or changed: 3, in all: 3\n");
    expect((await run("client-copy.mjs")).stdout).toBe("new or changed: 0, in all: 3\n");
    expect((await run("own-store.mjs")).stdout).toBe("3 subscriptions\n");
    const first = await run("changes.mjs");
    const [, checkpoint = ""] = /keep this checkpoint: (\S+)/.exec(first.stderr) ?? [];
    await shop.load([order(1, 2), customer(2, { email: "ada@example.com" })]);
    await shop.server.stop("SIGKILL");
    shop.server = await shop.program.serve(["serve", "--port", "0"]);
    expect((await run("client-copy.mjs")).stdout).toBe("new or changed: 1, in all: 4\n");
    const later = await run("changes.mjs", { CHECKPOINT: checkpoint });
    expect(later.stdout).toMatch(/^cus_[a-z2-7]{24} ada@example.com\n$/);
  });

  test.each([
    ["client-copy.mjs", "orders"],
    ["follow.mjs", "customers"],
  ])("%s reads all rows again after a restore, and keeps them with another shop's key", async (name, resource) => {
    const api = new FakeApi(3);
    const folder = await clientProject();
    const start = () => startIn(folder, ["node", name], { API_URL: api.url, API_KEY: `cad_pk_${"0".repeat(48)}` });
    await start().prints(/in all: 3/);
    api.restore("ord_1");
    const restored = start();
    await restored.prints(/new or changed: 2, in all: 2/);
    await restored.stop();
    const file = join(folder, `${resource}.copy`);
    const before = readFileSync(file);
    // If the program copied the other shop's rows, this row would change the file.
    api.put("ord_9", 9);
    api.isOtherShop = true;
    const refused = start();
    await refused.prints(/It is other_shop\./);
    expect(await refused.exited).toBe(1);
    expect(readFileSync(file)).toEqual(before);
  });

  test("follow.mjs goes on until it is stopped, also while serve is away", async () => {
    const shop = await apiShop(1);
    const folder = await clientProject();
    const following = startIn(folder, ["node", "follow.mjs"], { API_URL: shop.server.url, API_KEY: shop.key });
    await following.prints(/new or changed: 1, in all: 1/);
    const { port } = new URL(shop.server.url);
    await shop.server.stop("SIGKILL");
    await shop.load([customer(2)]);
    shop.server = await shop.program.serve(["serve", "--port", port]);
    await following.prints(/new or changed: 1, in all: 2/);
    expect(await following.stop()).toBe(0);
  });
});
