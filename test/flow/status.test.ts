import { expect, test } from "bun:test";
import { Program } from "../support/program.ts";

test("sds status shows what waits in each shop, and tells whether serve runs", async () => {
  const program = new Program();
  await program.run(["shop", "add", "alpha.myshopify.com"]);
  const stopped = await program.run(["status", "--json"]);
  expect(stopped.status).toBe(1);
  expect(stopped.stderr).toBe("sds: not serving: `sds serve` does not run\n");
  const shop = {
    domain: "alpha.myshopify.com",
    pending: 0,
    retrying: 0,
    dead: 0,
    inboxWaiting: 0,
    inboxFailed: 0,
    reconciledAt: null,
  };
  expect(JSON.parse(stopped.stdout)).toEqual({
    serving: false,
    version: expect.any(String),
    engine: "sqlite",
    shops: [shop],
  });

  const server = await program.serve();
  expect(await program.json(["status"])).toMatchObject({ serving: true, shops: [shop] });
  const text = await program.run(["status"]);
  expect(text.stdout).toContain("on SQLite: serving\n");
  expect(text.stdout).toMatch(/^alpha\.myshopify\.com +0 +0 +0 +0 +0 +never$/m);

  // A killed serve leaves its address behind.
  await server.stop("SIGKILL");
  const killed = await program.run(["status"]);
  expect([killed.status, killed.stderr]).toEqual([1, expect.stringContaining("does not answer")]);
});
