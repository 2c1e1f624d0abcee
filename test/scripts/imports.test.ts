import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Glob } from "bun";

const SCRIPTS = resolve(import.meta.dir, "../../scripts");

test("the modules of tests that scripts import work outside the test runner", () => {
  const files = [...new Glob("{bench,databases,fault}/**.ts").scanSync(SCRIPTS), ...new Glob("*.ts").scanSync(SCRIPTS)];
  const modules = files.flatMap((file) => {
    const imports = readFileSync(join(SCRIPTS, file), "utf8").matchAll(/from "((?:\.\.\/)+test\/[^"]+)"/g);
    return [...imports].map(([, path = ""]) => resolve(SCRIPTS, dirname(file), path));
  });
  expect(modules.length).toBeGreaterThan(10);
  const source = [...new Set(modules)].map((path) => `await import(${JSON.stringify(path)});`).join("\n");
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, "-e", `${source}\nprocess.exit();`]);
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
});
