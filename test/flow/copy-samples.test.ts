import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { loadRecords, readRows } from "../support/api-shop.ts";
import { FakeApi } from "../support/fake-api.ts";
import { gid, order } from "../support/records.ts";
import { type Install, ORDERS, RUNTIMES, type Runtime, served } from "../support/sample-runs.ts";
import { shellWith } from "../support/samples.ts";

/** Returns the command that copies the orders with the program in docs/copies.md. */
function copyCommand(runtime: Runtime, install: Install, file: string): string[] {
  if (runtime.suffix === "py") return [...install(runtime, "puller"), "--database", file, "--resource", "orders"];
  return [...install(runtime, "copy"), "orders", file];
}

describe("docs/copies.md", () => {
  test.each(RUNTIMES)("$name keeps a copy that equals the mirror", async (runtime) => {
    const { program, url, key, folder, run, install } = await served();
    const isPython = runtime.suffix === "py";
    const file = join(folder, isPython ? "orders.db" : "orders.json");
    const command = copyCommand(runtime, install, file);
    const copied = () => (isPython ? copyInSqlite(file) : copyInJson(file));
    const isCurrent = async () => {
      const stdout = expect.stringMatching(isPython ? /^orders: \d+ rows saved\n$/ : /^\d+ orders\n$/);
      expect(await run(command)).toEqual({ status: 0, stdout, stderr: "" });
      const rows = await readRows(url, key, "orders");
      expect(copied()).toEqual(Object.fromEntries(rows.map((row) => [row["id"], row])));
      return rows.length;
    };
    expect(await isCurrent()).toBe(ORDERS.length);
    expect(await isCurrent()).toBe(ORDERS.length);
    // This load changes every known order and adds one order. These orders do not fit on one page.
    await loadRecords(program, [
      ...ORDERS.map((each) => ({ ...each, shopifyId: gid.order(1), discountCents: 1 })),
      order(1, 500),
    ]);
    expect(await isCurrent()).toBe(ORDERS.length + 1);
  });

  test.each(RUNTIMES)(
    "$name reads all rows again after a restore, and keeps them with another shop's key",
    async (runtime) => {
      const { program, url, folder, run, install } = await served();
      const isPython = runtime.suffix === "py";
      const api = new FakeApi(3);
      const file = join(folder, "fake.copy");
      const command = copyCommand(runtime, install, file);
      const copied = () => Object.values((isPython ? copyInSqlite(file) : copyInJson(file)) as object);
      const runOnFake = () => run(command, { API_URL: api.url });
      await runOnFake();
      api.restore("ord_1");
      expect((await runOnFake()).status).toBe(0);
      expect(copied().toSorted()).toEqual(api.rows().toSorted());
      api.isOtherShop = true;
      expect(await runOnFake()).toMatchObject({ status: 1, stderr: expect.stringContaining("It is other_shop.") });
      expect(copied()).toHaveLength(2);
      // With a real server, the program also refuses the key of another shop.
      const real = copyCommand(runtime, install, join(folder, "real.copy"));
      expect((await run(real, { API_URL: url })).status).toBe(0);
      await program.json(["shop", "add", "beta.myshopify.com"]);
      const { key } = await program.json(["key", "create", "--shop", "beta.myshopify.com", "--label", "beta"]);
      const refused = await run(real, { API_KEY: String(key) });
      expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining("is from another shop") });
    },
  );

  test.each(RUNTIMES)("$name says shortly why it failed, and keeps the copy that is there", async (runtime) => {
    const { folder, run, install } = await served();
    const file = join(folder, "orders.copy");
    const command = copyCommand(runtime, install, file);
    expect((await run(command)).status).toBe(0);
    const before = readFileSync(file);
    const { status, stdout, stderr } = await run(command, { API_KEY: `cad_pk_${"0".repeat(48)}` });
    expect({ status, stdout, lines: stderr.split("\n").length }).toEqual({ status: 1, stdout: "", lines: 2 });
    expect(stderr).toContain("Send a valid API key");
    expect(readFileSync(file)).toEqual(before);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test.each(RUNTIMES.filter(({ suffix }) => suffix === "mjs"))(
    "$name leaves no draft behind that did not fit",
    async (runtime) => {
      const { folder, run, install } = await served();
      const file = join(folder, "orders.copy");
      const limit = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
      const command = copyCommand(runtime, install, file);
      const before = readdirSync(folder).toSorted();
      const { status, stderr } = await run(["sh", "-c", limit, "sh", ...command]);
      expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining("EFBIG") });
      expect(readdirSync(folder).toSorted()).toEqual(before);
    },
  );

  test("the two calls answer with a checkpoint and with what changed since", async () => {
    const { program, shell } = await served();
    const [first = "", second = ""] = shellWith("copies.md", "since=").trimEnd().split("\n");
    const checkpoint = /^x-checkpoint: (\S+)/i.exec((await shell(first)).stdout)?.[1] ?? "";
    expect(checkpoint).not.toBe("");
    await loadRecords(program, [order(1, 1, { shopifyId: gid.order(7) })]);
    const { stdout } = await shell(second.replace("CHECKPOINT", encodeURIComponent(checkpoint)));
    expect(JSON.parse(stdout)).toMatchObject({ data: [{ shopifyId: gid.order(7) }], page: { nextCursor: null } });
  });
});

function copyInJson(file: string): unknown {
  return (JSON.parse(readFileSync(file, "utf8")) as { rows: unknown }).rows;
}

function copyInSqlite(file: string): unknown {
  using db = new Database(file, { readonly: true });
  const rows = db.query<{ id: string; json: string }, []>("SELECT id, json FROM row").all();
  return Object.fromEntries(rows.map(({ id, json }) => [id, JSON.parse(json)]));
}
