import { expect, test } from "bun:test";
import { closeSync, constants, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { makeBlackhole } from "../support/blackhole.ts";
import { eventually } from "../support/eventually.ts";
import { PROGRAM, Program } from "../support/program.ts";

test("serve ends after a stop although a connection waits for an address that drops packets", async () => {
  const port = 40_000 + (process.pid % 20_000);
  const address = "127.0.0.77";
  await makeBlackhole(address, port);
  const program = await Program.withShop({ SDS_EGRESS_ALLOW: "127.0.0.0/8", SDS_DELIVERY_TIMEOUT: "1s" });
  await program.json(["webhook", "set", "--url", `http://${address}:${port}/`, "--all-topics"]);
  const server = await program.serve();
  await program.json(["webhook", "test"]);
  const attempted = () => program.json<{ attempts: number }[]>(["delivery", "list"]);
  await eventually(async () => (await attempted())[0]?.attempts === 1);
  const began = performance.now();
  expect(await server.stop()).toBe(0);
  // Without the stop, the connection attempt would end only after the system's timeout of two minutes.
  expect(performance.now() - began).toBeLessThan(100_000);
  expect(server.output).toContain("stopping on SIGTERM");
});

/** Whether a process has filled its pipe and is blocked. */
function hasFilledPipe(pid: number): boolean {
  const bytes = Number(/^wchar: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]);
  return bytes >= 65_536 && readFileSync(`/proc/${pid}/stat`, "utf8").includes(") S ");
}

test("a command writes all of a long message for a slow reader before it ends", async () => {
  const domain = "x".repeat(100_000);
  const pipe = join(temporaryFolder(), "pipe");
  Bun.spawnSync(["mkfifo", pipe]);
  // `openSync` for writing waits until the pipe has a reader. So the test opens a reader first.
  const first = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  const written = openSync(pipe, "w");
  const read = openSync(pipe, "r");
  const child = Bun.spawn([...PROGRAM, "shop", "add", domain], {
    env: { PATH: process.env["PATH"] ?? "" },
    stdout: "ignore",
    stderr: written,
  });
  closeSync(written);
  await eventually(() => child.exitCode !== null || hasFilledPipe(child.pid));
  expect(readFileSync(read, "utf8")).toContain(`"${domain}" is not`);
  for (const descriptor of [first, read]) closeSync(descriptor);
});

test("a command whose messages cannot be written, because the disk is full, ends at once", async () => {
  // If the command waited for the end of stderr, it would take five seconds.
  await eventually(async () => {
    const began = performance.now();
    const child = Bun.spawn(["bash", "-c", `"$@" 2>/dev/full`, "bash", ...PROGRAM, "shop", "nothing"]);
    expect(await child.exited).toBe(2);
    return performance.now() - began < 4_000;
  });
});
