import { expect, test } from "bun:test";
import { makeBlackhole } from "../support/blackhole.ts";
import { eventually } from "../support/eventually.ts";
import { PROGRAM, Program } from "../support/program.ts";

const DOMAIN = "alpha.myshopify.com";

test("serve ends after a stop although a connection waits for an address that drops packets", async () => {
  const port = 40_000 + (process.pid % 20_000);
  const address = "127.0.0.77";
  await makeBlackhole(address, port);
  const program = new Program(undefined, { SDS_EGRESS_ALLOW: "127.0.0.0/8", SDS_DELIVERY_TIMEOUT: "1s" });
  await program.json(["shop", "add", DOMAIN]);
  await program.json(["webhook", "set", "--url", `http://${address}:${port}/`, "--all-topics"]);
  const server = await program.serve();
  await program.json(["webhook", "test"]);
  const attempted = () => program.json<{ attempts: number }[]>(["delivery", "list"]);
  await eventually(async () => (await attempted())[0]?.attempts === 1);
  const began = performance.now();
  expect(await server.stop()).toBe(0);
  expect(performance.now() - began).toBeLessThan(8_000);
  expect(server.output).toContain("stopping on SIGTERM");
});

test("a command writes all of a long message for a slow reader before it ends", async () => {
  const domain = "x".repeat(100_000);
  const child = Bun.spawn(
    ["bash", "-c", `"$@" 2>&1 >/dev/null | (sleep 0.3; cat)`, "bash", ...PROGRAM, "shop", "add", domain],
    {
      stdout: "pipe",
    },
  );
  expect(await child.stdout.text()).toContain(`"${domain}" is not`);
});

test("a command whose messages cannot be written, because the disk is full, ends at once", async () => {
  const began = performance.now();
  const child = Bun.spawn(["bash", "-c", `"$@" 2>/dev/full`, "bash", ...PROGRAM, "shop", "nothing"]);
  expect(await child.exited).toBe(2);
  expect(performance.now() - began).toBeLessThan(4_000);
});
