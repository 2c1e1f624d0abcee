import { expect, test } from "bun:test";
import { existsSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { ENGINE, failure, PROGRAM, Program } from "../support/program.ts";

const DOMAIN = "alpha.myshopify.com";

async function secretsOf(program: Program): Promise<string[]> {
  const commands = [
    ["intake", "secret"],
    ["webhook", "secret"],
  ];
  return Promise.all(commands.map(async (args) => (await program.json<{ secret: string }>(args)).secret));
}

test("a rotation keeps all secrets, is refused beside serve, and asks before", async () => {
  const program = await Program.withShop();
  const secrets = await secretsOf(program);
  const path = join(program.data, "master.key");
  const key = readFileSync(path, "utf8");
  expect((await program.run(["master-key", "rotate"])).status).toBe(2);
  const server = await program.serve();
  expect((await program.run(["master-key", "rotate", "--yes"])).stderr).toMatch(/is in use: stop (every )?`sds serve`/);
  await server.stop();
  expect(readFileSync(path, "utf8")).toBe(key);
  expect(await program.json(["master-key", "rotate", "--yes"])).toEqual({ rotatedAt: expect.any(String) });
  expect(readFileSync(path, "utf8")).not.toBe(key);
  expect(await secretsOf(program)).toEqual(secrets);
});

test("a rotation that is killed leaves a file that opens every secret", async () => {
  const program = await Program.withShop();
  const secrets = await secretsOf(program);
  const path = join(program.data, "master.key");
  for (let kill = 0; kill < 5; kill += 1) {
    const key = readFileSync(path, "utf8");
    const child = Bun.spawn([...PROGRAM, "master-key", "rotate", "--yes"], {
      env: await program.environment(),
      stderr: "ignore",
    });
    await eventually(() => readFileSync(path, "utf8") !== key || child.exitCode !== null);
    child.kill("SIGKILL");
    await child.exited;
    expect(await secretsOf(program)).toEqual(secrets);
  }
});

test("a lost key is named with its remedy, and reset lists what is to do", async () => {
  const program = await Program.withShop();
  const secrets = await secretsOf(program);
  const path = join(program.data, "master.key");
  renameSync(path, join(program.data, "elsewhere"));
  expect((await program.run(["intake", "secret"])).stderr).toContain(
    "put it back from your backup; if it is lost for good, `sds master-key reset` makes new secrets",
  );
  const listed = `  ${DOMAIN}: a new intake secret, a new signing secret\n`;
  const question = "this makes a new master key and new secrets for 1 shop: add --yes to do it";
  expect(await program.run(["master-key", "reset"])).toEqual({
    ...failure(2, question),
    stderr: `${listed}sds: ${question}\n`,
  });
  expect(existsSync(path)).toBe(false);
  const { status, stderr } = await program.run(["master-key", "reset", "--yes"]);
  expect(status).toBe(0);
  expect(stderr).toContain(`sds intake secret --shop ${DOMAIN}`);
  expect(stderr.includes("Copy the file to every node")).toBe(ENGINE === "postgres");
  const made = await secretsOf(program);
  expect(made.filter((secret) => secrets.includes(secret))).toEqual([]);
  expect((await program.run(["master-key", "reset", "--yes"])).status).toBe(1);
});
