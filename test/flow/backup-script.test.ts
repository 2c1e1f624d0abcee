import { expect, test } from "bun:test";
import { copyFileSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { PROGRAM, Program } from "../support/program.ts";
import { shellWith } from "../support/samples.ts";

test("the backup in docs/operating.md makes a new copy each night, for its owner alone, that can be restored", async () => {
  const script = shellWith("operating.md", "backups/sds-$(date");
  const folder = join(temporaryFolder(), "home");
  const program = new Program(join(folder, "data"));
  await program.json(["shop", "add", "alpha.myshopify.com"]);
  const executable = (name: string, text: string) =>
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o700 });
  // Replaces the system's clock.
  executable("date", "echo $NIGHT");
  executable("sds", `exec ${PROGRAM.join(" ")} "$@"`);
  for (const night of ["first", "second"]) {
    const env = { PATH: `${folder}:${process.env["PATH"]}`, NIGHT: night };
    const child = Bun.spawn(["sh", "-c", script], { cwd: folder, env, stdout: "ignore", stderr: "pipe" });
    expect({ status: await child.exited, stderr: await child.stderr.text() }).toEqual({
      status: 0,
      stderr: `The master key is not in it. Keep a copy of ${join(program.data, "master.key")} in another place.\n`,
    });
  }
  const copies = readdirSync(join(folder, "backups"));
  expect(copies.toSorted()).toEqual(["sds-first.db", "sds-second.db"]);
  for (const copy of copies) {
    expect(statSync(join(folder, "backups", copy)).mode & 0o777).toBe(0o600);
    const restored = new Program(join(folder, `restored-${copy}`));
    mkdirSync(restored.data);
    copyFileSync(join(program.data, "master.key"), join(restored.data, "master.key"));
    await restored.json(["restore", join(folder, "backups", copy), "--yes"]);
    expect(await restored.json<unknown[]>(["shop", "list"])).toMatchObject([{ domain: "alpha.myshopify.com" }]);
  }
});
