import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { ORDERS, RUNTIMES, rowsOf, served } from "../support/sample-runs.ts";
import { SAMPLES, shellWith } from "../support/samples.ts";

// Starting programs takes time on a busy machine.
setDefaultTimeout(60_000);

test("every program in TypeScript and Python in the pages has a test", () => {
  const code = SAMPLES.filter(({ language }) => ["ts", "js", "python"].includes(language));
  // Some lines of a program, for a library that has tests of its own.
  const [fragments, programs] = [code.filter(({ file }) => file === undefined), code.filter(({ file }) => file)];
  expect(fragments.map((each) => each.code.split("\n")[0])).toEqual(["// npm install standardwebhooks"]);
  expect(programs.map(({ file }) => file).toSorted()).toEqual(
    [
      "copy.mts",
      "copy_rows.py",
      "receiver.mts",
      "receiver.py",
      "rows.mts",
      "rows.py",
      "verify.mts",
      "verify.py",
    ].sort(),
  );
});

describe("docs/quick-start.md", () => {
  test("the first call answers with two rows", async () => {
    const { shell } = await served();
    const { stdout } = await shell(shellWith("quick-start.md", "curl"));
    expect(JSON.parse(stdout)).toMatchObject({
      data: [{ status: "ACTIVE" }, { status: "ACTIVE" }],
      page: { limit: 2 },
    });
  });

  test.each(RUNTIMES)("$name prints all orders, over several pages", async (runtime) => {
    const { url, key, run, install } = await served();
    const { status, stdout, stderr } = await run(install(runtime, "rows"));
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const orders = await rowsOf(url, key, "orders");
    expect(orders).toHaveLength(ORDERS.length);
    expect(stdout.trimEnd().split("\n")).toEqual(
      orders.map(({ id, status, totalCents }) => `${id} ${status} ${totalCents}`),
    );
  });
});

test("the loop in docs/api.md prints all orders", async () => {
  const { url, key, shell } = await served();
  const { stdout } = await shell(shellWith("api.md", "jq"));
  const printed = stdout.trimEnd().split("\n");
  expect(printed.map((line) => JSON.parse(line) as unknown)).toEqual(await rowsOf(url, key, "orders"));
});

test("the post to the intake in docs/records.md is accepted", async () => {
  const { shell } = await served();
  expect((await shell(shellWith("records.md", "/intake"))).stdout).toBe('{"accepted":1}');
});

describe("docs/receivers.md", () => {
  test.each(RUNTIMES)("$name stores each event once, and refuses a forged one", async (runtime) => {
    const { program, folder, env, install, shell } = await served();
    const { secret } = await program.json<{ secret: string }>(["webhook", "secret"]);
    const port = await freePort();
    const receiver = Bun.spawn(install(runtime, "receiver"), {
      cwd: folder,
      env: { ...env, WEBHOOK_SECRET: secret, PORT: port },
      stdout: "ignore",
      stderr: "ignore",
    });
    afterTest(async () => {
      receiver.kill("SIGKILL");
      await receiver.exited;
    });
    const address = `http://127.0.0.1:${port}/`;
    await eventually(
      async () => (await fetch(address, { method: "POST", body: "{}" }).catch(() => null))?.status === 401,
    );
    await program.json(["webhook", "set", "--url", address, "--all-topics"]);
    const { id } = await program.json<{ id: string }>(["webhook", "test", "--topic", "order.failed"]);
    const status = async () => (await program.json<{ status: string }>(["delivery", "show", id])).status;
    await eventually(async () => (await status()) === "delivered");
    // Once more, and the sample of the page itself.
    await program.json(["delivery", "retry", id]);
    await eventually(
      async () =>
        (await program.json<{ attempts: number; status: string }>(["delivery", "show", id])).attempts === 2 &&
        (await status()) === "delivered",
    );
    const sample = shellWith("receivers.md", "openssl");
    expect((await shell(sample, { WEBHOOK_SECRET: secret, PORT: port })).stdout).toContain(" 204 ");
    expect((await shell(sample, { WEBHOOK_SECRET: `${secret}x`, PORT: port })).stdout).toContain(" 401 ");
    expect(storedIds(folder)).toEqual([id, "whd_test"]);
  });
});

/** The ids that a receiver of the pages has stored. */
function storedIds(folder: string): string[] {
  const text = join(folder, "events.ndjson");
  if (existsSync(text))
    return readFileSync(text, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { id: string }).id);
  const query =
    "import sqlite3; [print(id) for (id,) in sqlite3.connect('events.db').execute('SELECT id FROM event ORDER BY rowid')]";
  return Bun.spawnSync(["python3", "-c", query], { cwd: folder }).stdout.toString().trimEnd().split("\n");
}

/** A port that nobody listens on at the moment. */
async function freePort(): Promise<string> {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const { port } = server;
  await server.stop(true);
  return String(port);
}
