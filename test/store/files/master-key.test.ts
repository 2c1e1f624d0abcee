import { expect, test } from "bun:test";
import { readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openMasterKey } from "../../../src/store/files/master-key.ts";
import { randomBytes, temporaryFolder } from "../../support/app.ts";

test("an empty key file of an interrupted first start is refused with what to do, and stays", async () => {
  const path = join(temporaryFolder(), "master.key");
  writeFileSync(path, "");
  const refused = await openMasterKey(path, undefined, randomBytes).catch((thrown: Error) => thrown.message);
  expect(refused).toBe(
    `the master key ${path} is empty: put it back from your backup, or delete the file if the first start of sds in ` +
      "this folder was interrupted",
  );
  expect(readFileSync(path, "utf8")).toBe("");
});

test("a new key file is readable by its owner only", async () => {
  const path = join(temporaryFolder(), "master.key");
  await openMasterKey(path, undefined, randomBytes);
  expect((statSync(path).mode & 0o7777).toString(8)).toBe("600");
});

test("a key file that cannot be reached is refused as unreadable, not as missing", async () => {
  const path = join(temporaryFolder(), "master.key");
  symlinkSync(path, path);
  const refused = await openMasterKey(path, "0123456789abcdef", randomBytes).catch((thrown: Error) => thrown.message);
  expect(refused).toStartWith(`cannot read the master key ${path}: `);
});
