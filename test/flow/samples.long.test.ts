import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readRows } from "../support/api-shop.ts";
import { afterTest } from "../support/cleanup.ts";
import { EXAMPLES, startIn } from "../support/client-project.ts";
import { eventually } from "../support/eventually.ts";
import { refusal } from "../support/fake-api.ts";
import { freePort } from "../support/postgres-process.ts";
import { beginPost } from "../support/raw-http.ts";
import { type Install, ORDERS, RUNTIMES, type Runtime, served } from "../support/sample-runs.ts";
import { SAMPLES, shellWith } from "../support/samples.ts";

test("every program in JavaScript and Python in the pages has a test", () => {
  const code = SAMPLES.filter(({ language }) => ["ts", "js", "python"].includes(language));
  // A fragment is only some lines of a program. The only fragment uses a library that has its own tests.
  const [fragments, programs] = [code.filter(({ file }) => file === undefined), code.filter(({ file }) => file)];
  expect(fragments.map((each) => each.code.split("\n")[0])).toEqual(["// npm install standardwebhooks"]);
  const names = programs.map(({ file }) => file);
  expect(new Set(names).size).toBe(names.length);
  expect(names.toSorted()).toEqual(
    [
      ...["copy.mjs", "puller.py", "receiver.mjs", "receiver.py", "rows.mjs", "rows.py", "verify.mjs", "verify.py"],
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

describe("programs that read", () => {
  const PROGRAMS = RUNTIMES.flatMap((runtime) => [
    { name: `rows, ${runtime.name}`, runtime, program: "rows", args: [] as string[] },
    runtime.suffix === "py"
      ? { name: `puller, ${runtime.name}`, runtime, program: "puller", args: ["--database", "orders.db"] }
      : { name: `copy, ${runtime.name}`, runtime, program: "copy", args: ["orders", "orders.json"] },
  ]);

  test.each(PROGRAMS)("$name: try again after 429 and 503", async ({ runtime, program, args }) => {
    const { url, run, install } = await served();
    const busy = startBusy(url);
    const { status, stdout } = await run([...install(runtime, program), ...args], { API_URL: busy.url });
    expect({ status, refusals: busy.refusals }).toEqual({ status: 0, refusals: [] });
    expect(stdout).not.toBe("");
  });

  test.each(PROGRAMS)("$name: print why they failed in one line", async ({ runtime, program, args }) => {
    const { run, install } = await served();
    const failure = async (env: Record<string, string>) => {
      const { status, stdout, stderr } = await run([...install(runtime, program), ...args], env);
      expect({ status, stdout, lines: stderr.split("\n").length }).toEqual({ status: 1, stdout: "", lines: 2 });
      return stderr;
    };
    expect(await failure({ API_KEY: `cad_pk_${"0".repeat(48)}` })).toContain("Send a valid API key");
    expect(await failure({ API_URL: "" })).toStartWith(`${program}: `);
    // The puller is left out, because it retries for two minutes. client/puller.test.ts checks its messages.
    if (program !== "puller")
      expect(await failure({ API_URL: `http://127.0.0.1:${freePort()}` })).toStartWith(`${program}: `);
  });
});

test("the loop in docs/api.md prints all orders, also after 429 and 503", async () => {
  const { url, key, shell } = await served();
  const busy = startBusy(url);
  const { stdout } = await shell(shellWith("api.md", "jq"), { API_URL: busy.url });
  expect(busy.refusals).toEqual([]);
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
    const receiver = startIn(folder, receiverCommand(runtime, install), {
      ...env,
      WEBHOOK_SECRET: `${former} ${secret}`,
      PORT: port,
    });
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
    // The receiver refuses an old delivery that is sent again. It also refuses a delivery without the headers of
    // Standard Webhooks.
    const given = { WEBHOOK_SECRET: secret, PORT: port };
    expect((await shell(sample.replace("$(date +%s)", "1767225600"), given)).stdout).toContain(" 401 ");
    expect((await shell(sample.replaceAll("webhook-", "other-"), given)).stdout).toContain(" 401 ");
    expect(storedIds(folder)).toEqual([id, "whd_test"]);
    await receiver.prints(new RegExp(`^listening on http://127.0.0.1:${port}$`, "m"));
    await receiver.prints(new RegExp(`^test: order.failed ${id}$`, "m"));
    await receiver.prints(/^subscription.cancelled whd_test$/m);
    // The receiver listens on 127.0.0.1 only. On a wildcard address, it would also answer on 127.0.0.2.
    if (process.platform === "linux") await expect(fetch(`http://127.0.0.2:${port}/`)).rejects.toThrow();
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

/** Starts a proxy that answers 429 and 503 before it passes requests on. */
function startBusy(url: string): { url: string; refusals: Response[] } {
  const refusals = [
    refusal(429, "rate_limited", { "Retry-After": "1" }),
    refusal(503, "unavailable", { "Retry-After": "1" }),
  ];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch({ url: asked, headers }) {
      const { pathname, search } = new URL(asked);
      const Authorization = headers.get("Authorization") ?? "";
      return refusals.shift() ?? fetch(url + pathname + search, { headers: { Authorization, "Accept-Encoding": "" } });
    },
  });
  afterTest(() => server.stop(true));
  return { url: server.url.origin, refusals };
}

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

/** Waits until the receiver answers an unsigned POST with 401. That answer shows that the receiver runs. */
async function untilAnswered(address: string): Promise<void> {
  const status = async () => (await fetch(address, { method: "POST", body: "{}" }).catch(() => undefined))?.status;
  await eventually(async () => (await status()) === 401);
}
