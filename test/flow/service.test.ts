import { expect, test } from "bun:test";
import { chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { Program } from "../support/program.ts";

test("service print warns of what the unit would lack: a folder, settings of this environment, a user of its own", async () => {
  const data = join(temporaryFolder(), "data");
  const program = new Program(data);
  const missing = await program.run(["service", "print"], { env: { SDS_PORT: "8081" } });
  expect(missing.status).toBe(0);
  expect(missing.stdout).toContain(`--data ${data} serve\n`);
  expect(missing.stderr).toBe(
    `sds: warning: there is no ${data} yet: the service needs it, so add a shop first\n` +
      "sds: warning: the unit does not have SDS_PORT of this environment: " +
      `put that into ${join(data, "sds.env")}\n`,
  );
  mkdirSync(data);
  if (process.geteuid?.() !== 0) return;
  expect((await program.run(["service", "print"])).stderr).toBe(
    `sds: warning: the service runs as root, who owns ${data}: ` +
      "give the folder to a user of its own with chown -R\n",
  );
  chownSync(data, 65_534, 65_534);
  expect((await program.run(["service", "print"])).stderr).toBe("");
});
