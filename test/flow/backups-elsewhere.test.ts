import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { PROGRAM, Program } from "../support/program.ts";
import { shellWith } from "../support/samples.ts";

async function importCustomer(program: Program, number: number): Promise<void> {
  const stdin = `${JSON.stringify({ type: "customer", shopifyId: `gid://shopify/Customer/${number}` })}\n`;
  await program.json(["import", "-"], { stdin });
}

async function ask(url: string, key: string, query: string): Promise<{ checkpoint: string; page: unknown }> {
  const response = await fetch(`${url}/api/v1/customers?${query}`, { headers: { authorization: `Bearer ${key}` } });
  return { checkpoint: response.headers.get("x-checkpoint") ?? "", page: await response.json() };
}

test("after Litestream's older file went through sds restore, readers are told that numbers went back", async () => {
  const program = await Program.withShop();
  const { key } = await program.json<{ key: string }>(["key", "create", "--label", "reader"]);
  await importCustomer(program, 1);
  const server = await program.serve();
  // This file stands for the output of `litestream restore -o FILE`: the database of an earlier moment, with
  // Litestream's own tables.
  const file = join(temporaryFolder(), "from-litestream.db");
  const db = new Database(join(program.data, "sds.db"));
  db.query("VACUUM INTO ?").run(file);
  db.close();
  const restored = new Database(file);
  restored.run("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER)");
  restored.run("CREATE TABLE _litestream_lock (id INTEGER)");
  restored.close();
  await importCustomer(program, 2);
  const { checkpoint } = await ask(server.url, key, "updatedSince=2026-01-01T00:00:00Z");
  const later = `since=${encodeURIComponent(checkpoint)}`;
  expect(await ask(server.url, key, later)).toMatchObject({ page: { data: [] } });
  await server.stop();

  await program.json(["restore", file, "--yes"]);
  // Now the restored mirror has as many changes as before. Only the new epoch shows that these are different changes.
  for (const number of [3, 4, 5]) await importCustomer(program, number);
  const { url } = await program.serve();
  expect(await ask(url, key, later)).toMatchObject({ page: { error: { code: "bad_cursor", reason: "restored" } } });
});

/**
 * Makes a shop, and a shell for the scripts of the documentation. Local folders replace the remote storage of these
 * scripts.
 */
async function shopWithShell() {
  const folder = temporaryFolder();
  const program = new Program(join(folder, "data"));
  await program.json(["shop", "add", "alpha.myshopify.com"]);
  const executable = (name: string, text: string) =>
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o700 });
  executable("sds", `exec ${PROGRAM.join(" ")} "$@"`);
  // Replaces the system's clock.
  executable("date", "echo $NIGHT");
  writeFileSync(join(folder, "password"), "a password");
  mkdirSync(join(folder, "drill"));
  copyFileSync(join(program.data, "master.key"), join(folder, "drill/master.key"));
  const settings = {
    PATH: `${folder}:${process.env["PATH"]}`,
    HOME: folder,
    RESTIC_REPOSITORY: join(folder, "repository"),
    RESTIC_PASSWORD_FILE: join(folder, "password"),
    RCLONE_CONFIG_REMOTE_TYPE: "alias",
    RCLONE_CONFIG_REMOTE_REMOTE: join(folder, "remote"),
  };

  async function run(script: string, night = ""): Promise<void> {
    const child = Bun.spawn(["sh", "-euc", script.replaceAll(/^export (RESTIC|AWS).*$/gm, "")], {
      cwd: folder,
      env: { ...settings, NIGHT: night },
      stdout: "ignore",
      stderr: "pipe",
    });
    const stderr = await child.stderr.text();
    expect({ status: await child.exited, stderr }).toMatchObject({ status: 0 });
  }

  return { folder, run, drill: new Program(join(folder, "drill")) };
}

const NIGHTLY = shellWith("operating.md", "restic backup --stdin");
const DRILL = shellWith("operating.md", "restic dump");
const RESTORED = [{ domain: "alpha.myshopify.com" }];

test.skipIf(Bun.which("restic") === null)("the script with restic in docs/operating.md can be restored", async () => {
  const { run, drill } = await shopWithShell();
  await run("restic init");
  for (let night = 0; night < 2; night += 1) await run(NIGHTLY);
  await run(DRILL);
  expect(await drill.json<unknown[]>(["shop", "list"])).toMatchObject(RESTORED);
});

test.skipIf(Bun.which("rclone") === null)("the script with rclone keeps seven, which can be restored", async () => {
  const { folder, run, drill } = await shopWithShell();
  const sending = shellWith("operating.md", "rclone copyto");
  const script = `${NIGHTLY.split("\n")
    .filter((line) => !line.startsWith("restic"))
    .join("\n")}\n${sending}`;
  for (let night = 1; night <= 9; night += 1) await run(script, `2026-01-0${night}`);
  const names = Array.from({ length: 7 }, (_, index) => `sds-2026-01-0${index + 3}.db`);
  expect(readdirSync(join(folder, "remote/sds")).toSorted()).toEqual(names);
  await run(DRILL.replace(/^restic dump.*$/m, "rclone copyto remote:sds/sds-2026-01-09.db sds.db"));
  expect(await drill.json<unknown[]>(["shop", "list"])).toMatchObject(RESTORED);
});
