import { expect, test } from "bun:test";
import { chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { unitFor } from "../../src/cli/systemd.ts";
import { temporaryFolder } from "../support/app.ts";

function settingsOf(unit: string): string[] {
  return unit.split("\n").filter((line) => /^(?:ExecStart|User|StateDirectory|ReadWritePaths|ProtectHome)=/.test(line));
}

test("the unit for the package's folder lets systemd make the folder", () => {
  expect(settingsOf(unitFor("/var/lib/sds", ["/usr/bin/sds"]))).toEqual([
    "ExecStart=/usr/bin/sds --data /var/lib/sds serve",
    "User=sds",
    "StateDirectory=sds",
    "ProtectHome=yes",
  ]);
});

test("the unit for another folder runs as its owner, and hides no home that it needs", () => {
  const folder = join(temporaryFolder(), 'my "data" 100%');
  mkdirSync(folder);
  if (process.geteuid?.() === 0) chownSync(folder, 65_534, 65_534);
  const owner = process.geteuid?.() === 0 ? "nobody" : expect.any(String);
  const quoted = `"${folder.replaceAll('"', '\\"').replaceAll("%", "%%")}"`;
  const [start, user, ...others] = settingsOf(unitFor(folder, ["/home/ann/sds"]));
  expect([start, user?.replace("User=", ""), ...others]).toEqual([
    `ExecStart=/home/ann/sds --data ${quoted} serve`,
    owner,
    `ReadWritePaths=${quoted}`,
  ]);
});

const analyze = Bun.which("systemd-analyze");

test.skipIf(analyze === null)("systemd accepts the unit, and calls its exposure 2.0 or less", async () => {
  const file = join(temporaryFolder(), "sds.service");
  writeFileSync(file, unitFor("/var/lib/sds", [process.execPath]));
  const verified = Bun.spawnSync([analyze ?? "", "verify", file]);
  expect([verified.exitCode, verified.stderr.toString()]).toEqual([0, ""]);
  const rated = Bun.spawnSync([analyze ?? "", "security", "--offline=true", "--threshold=20", file]);
  expect(rated.exitCode).toBe(0);
});
