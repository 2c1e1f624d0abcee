import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { eventually } from "../support/eventually.ts";
import { PROGRAM, Program } from "../support/program.ts";

/** Runs a command line in a shell, where `$SDS` is the program. */
async function shell(program: Program, line: string): Promise<{ status: number; stderr: string }> {
  const env = await program.environment({ SDS: PROGRAM.join(" ") });
  const child = Bun.spawn(["bash", "-c", line], { env, cwd: temporaryFolder(), stdout: "ignore", stderr: "pipe" });
  const [stderr, status] = await Promise.all([child.stderr.text(), child.exited]);
  return { status, stderr };
}

const FULL = "sds: cannot write to stdout: the disk is full: free some space";
const CLOSED = "sds: cannot write to stdout: it is closed";

describe("data that cannot be written to stdout", () => {
  test.each([
    [">/dev/full", FULL],
    [">&-", CLOSED],
  ])("ends a command with 1 and one line: %s", async (to, message) => {
    const program = await Program.withShop();
    for (const args of ["shop list", "shop list --json"])
      expect(await shell(program, `$SDS ${args} ${to}`)).toEqual({ status: 1, stderr: `${message}\n` });
  });

  test.each([
    [">/dev/full", FULL],
    [">&-", CLOSED],
    ["--json >/dev/full", FULL],
  ])("revokes a key that nobody has seen: %s", async (to, message) => {
    const program = await Program.withShop();
    expect(await shell(program, `$SDS key create --label A ${to}`)).toEqual({
      status: 1,
      stderr: `${message}; the key was revoked, because nobody has seen it\n`,
    });
    expect(await program.json<unknown[]>(["key", "list"])).toEqual([]);
  });

  test("may go to /dev/null", async () => {
    const program = await Program.withShop();
    expect((await shell(program, "$SDS key create --label A >/dev/null")).status).toBe(0);
    expect(await program.json<unknown[]>(["key", "list"])).toHaveLength(1);
  });
});

test("messages that cannot be written do not change the exit status", async () => {
  const program = await Program.withShop();
  expect((await shell(program, "$SDS shop list 2>/dev/full")).status).toBe(0);
  expect((await shell(program, "$SDS shop lst 2>/dev/full")).status).toBe(2);
});

test("control characters of an argument or a file do not reach the terminal", async () => {
  const program = await Program.withShop();
  const hostile = "a\u001b[31m\u0007\r\u009bb";
  for (const args of [
    ["shop", "show", hostile],
    ["shop", hostile],
    ["import", hostile],
    ["restore", hostile, "--yes"],
    ["--data", `/nowhere/${hostile}`, "shop", "list"],
    ["serve", "--port", hostile],
  ]) {
    const { status, stderr } = await program.run(args);
    expect(status).toBeGreaterThan(1);
    expect(stderr).toMatch(/^sds: [^\p{Cc}]*a<U\+001B>\[31m<U\+0007><U\+000D><U\+009B>b[^\p{Cc}]*\n$/u);
  }
});

describe("SIGHUP", () => {
  test("stops a serve on a terminal, as SIGTERM does", async () => {
    const program = await Program.withShop();
    let shown = "";
    const child = Bun.spawn([...PROGRAM, "serve", "--port", "0"], {
      env: await program.environment(),
      terminal: {
        data: (_, bytes) => {
          shown += Buffer.from(bytes).toString();
        },
      },
    });
    await eventually(() => shown.includes("documentation"));
    child.kill("SIGHUP");
    expect(await child.exited).toBe(0);
    expect(shown).toContain("stopping on SIGHUP");
  });

  test("makes a serve without a terminal read its settings anew, and wrong ones change nothing", async () => {
    const program = await Program.withShop();
    const file = join(program.data, "sds.env");
    const server = await program.serve();
    for (const [text, said] of [
      ["SDS_LOG=warn\nSDS_RATE_LIMIT=1/2", '"settings that changed need a restart of serve","settings":"rateLimit"'],
      ["SDS_LOG=loud", "the settings are wrong, so the former ones stay"],
      ["no setting", "sds.env line 1 is no setting"],
      ["SDS_LOG=debug", '"read the settings","logLevel":"debug"'],
    ] as const) {
      writeFileSync(file, text);
      process.kill(server.pid, "SIGHUP");
      await eventually(() => server.output.includes(said));
    }
    // The level warn applied at once, so the info message about it was not logged.
    expect(server.output).not.toContain('"logLevel":"warn"');
    expect(await server.stop()).toBe(0);
  });

  test("is ignored by a serve that was started with nohup", async () => {
    const program = await Program.withShop();
    const line = [
      "nohup $SDS serve --port 0 2>log >/dev/null & pid=$!",
      "until grep -qs 'listening on' log; do sleep 0.05; done",
      "kill -HUP $pid; $SDS shop list >/dev/null; kill -TERM $pid; wait $pid; echo $? >&2; cat log >&2",
    ].join("\n");
    const { stderr } = await shell(program, line);
    expect(stderr).toStartWith("0\n");
    expect(stderr).toContain("stopping on SIGTERM");
  });
});

test("the help of serve keeps to the loopback address, and says how to add TLS", async () => {
  const { stdout } = await new Program().run(["serve", "--help"]);
  expect(stdout).not.toContain("0.0.0.0");
  expect(stdout).toContain("TLS");
});

test("the help of the delivery log says how long it lasts", async () => {
  const program = new Program();
  for (const args of [["delivery"], ["delivery", "list"], ["delivery", "show"]])
    expect((await program.run([...args, "--help"])).stdout.replaceAll(/\s+/g, " ")).toContain(
      "Delivered ones are removed after 30 days (SDS_KEEP_DELIVERED), dead ones are kept.",
    );
});
