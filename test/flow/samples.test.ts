import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readRows } from "../support/api-shop.ts";
import { EXAMPLES, startIn } from "../support/client-project.ts";
import { eventually } from "../support/eventually.ts";
import { freePort } from "../support/postgres-process.ts";
import { beginPost } from "../support/raw-http.ts";
import { type Install, ORDERS, RUNTIMES, type Runtime, served } from "../support/sample-runs.ts";
import { SAMPLES, shellWith } from "../support/samples.ts";

test("every program in TypeScript and Python in the pages has a test", () => {
  const code = SAMPLES.filter(({ language }) => ["ts", "js", "python"].includes(language));
  // A fragment is only some lines of a program. The library that this fragment uses has its own tests.
  const [fragments, programs] = [code.filter(({ file }) => file === undefined), code.filter(({ file }) => file)];
  expect(fragments.map((each) => each.code.split("\n")[0])).toEqual(["// npm install standardwebhooks"]);
  expect(programs.map(({ file }) => file).toSorted()).toEqual(
    [
      ...["copy.mts", "puller.py", "receiver.mts", "receiver.py", "rows.mts", "rows.py", "verify.mts", "verify.py"],
      // client.test.ts and client-receivers.test.ts run these.
      ...EXAMPLES.keys(),
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
    const orders = await readRows(url, key, "orders");
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
  expect(printed.map((line) => JSON.parse(line) as unknown)).toEqual(await readRows(url, key, "orders"));
});

test("the post to the intake in docs/records.md is accepted", async () => {
  const { shell } = await served();
  expect((await shell(shellWith("records.md", "/intake"))).stdout).toBe('{"accepted":1}');
});

describe("docs/receivers.md", () => {
  test.each(RUNTIMES)("$name stores each event once, and refuses a forged one", async (runtime) => {
    const { program, folder, env, install, shell } = await served();
    const { secret } = await program.json<{ secret: string }>(["webhook", "secret"]);
    const port = String(freePort());
    const former = `whsec_${btoa("former")}`;
    startIn(folder, receiverCommand(runtime, install), { ...env, WEBHOOK_SECRET: `${former} ${secret}`, PORT: port });
    const address = `http://127.0.0.1:${port}/`;
    await untilAnswered(address);
    await program.json(["webhook", "set", "--url", address, "--all-topics"]);
    const { id } = await program.json<{ id: string }>(["webhook", "test", "--topic", "order.failed"]);
    const status = async () => (await program.json<{ status: string }>(["delivery", "show", id])).status;
    await eventually(async () => (await status()) === "delivered");
    // The program sends the same delivery again. Then the test sends the sample from the page.
    await program.json(["delivery", "retry", id]);
    await eventually(
      async () =>
        (await program.json<{ attempts: number; status: string }>(["delivery", "show", id])).attempts === 2 &&
        (await status()) === "delivered",
    );
    const sample = shellWith("receivers.md", "openssl");
    const answer = async (WEBHOOK_SECRET: string) => (await shell(sample, { WEBHOOK_SECRET, PORT: port })).stdout;
    expect(await answer(secret)).toContain(" 204 ");
    expect(await answer(former)).toContain(" 204 ");
    expect(await answer(`whsec_${btoa("another")}`)).toContain(" 401 ");
    expect(storedIds(folder)).toEqual([id, "whd_test"]);
    const file = join(folder, runtime.suffix === "py" ? "events.db" : "events.ndjson");
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test.each(RUNTIMES)("$name keeps working after senders that stall, hang up or send too much", async (runtime) => {
    const { folder, env, install, shell } = await served();
    const port = String(freePort());
    const given = { WEBHOOK_SECRET: "whsec_AAAA", PORT: port };
    const isPython = runtime.suffix === "py";
    // The last line is incomplete, as after a crash.
    if (!isPython) writeFileSync(join(folder, "events.ndjson"), '{"id":"whd_older"}\n{"id":"whd_cut');
    const receiver = startIn(folder, receiverCommand(runtime, install), { ...env, ...given });
    const address = `http://127.0.0.1:${port}/`;
    await untilAnswered(address);
    await beginPost(address);
    (await beginPost(address)).destroy();
    await receiver.prints(isPython ? /refused[\s\S]*refused/ : /aborted|ECONNRESET/);
    expect((await fetch(address, { method: "POST", body: "x".repeat(1_048_577) })).status).toBe(413);
    const sample = shellWith("receivers.md", "openssl");
    expect((await shell(sample, given)).stdout).toContain(" 204 ");
    expect(storedIds(folder)).toEqual([...(isPython ? [] : ["whd_older"]), "whd_test"]);
  });
});

function receiverCommand(runtime: Runtime, install: Install): string[] {
  return [...install(runtime, "receiver"), ...(runtime.suffix === "py" ? ["--database", "events.db"] : [])];
}

/** Reads the ids that a sample receiver has stored. */
function storedIds(folder: string): string[] {
  const text = join(folder, "events.ndjson");
  if (existsSync(text))
    return readFileSync(text, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { id: string }).id);
  using db = new Database(join(folder, "events.db"), { readonly: true });
  const query = db.query<{ id: string }, []>("SELECT id FROM event ORDER BY rowid");
  return query.all().map(({ id }) => id);
}

/** Waits until a receiver runs. It then refuses an unsigned post with 401. */
async function untilAnswered(address: string): Promise<void> {
  const status = async () => (await fetch(address, { method: "POST", body: "{}" }).catch(() => undefined))?.status;
  await eventually(async () => (await status()) === 401);
}
