import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openVault, type Vault } from "../../../src/store/files/vault.ts";
import { failures } from "../../conformance/fixtures.ts";
import { randomBytes, temporaryFolder } from "../../support/app.ts";

const masterKey = () => join(temporaryFolder(), "master.key");

test("a secret opens for the purpose that it was sealed for, and for no other", async () => {
  const vault = await openVault(masterKey(), undefined, randomBytes);
  const sealed = await vault.seal("whsec_é", "webhook 1");
  expect(await vault.open(sealed, "webhook 1")).toBe("whsec_é");
  expect(await vault.openOften(sealed, "webhook 1")).toBe("whsec_é");
  const refused = await failures([vault.open(sealed, "webhook 2"), vault.openOften(sealed, "webhook 2")]);
  expect(refused).toMatchObject(
    refused.map(() => ({
      code: "failed",
      message: expect.stringContaining("a stored secret cannot be decrypted with the master key"),
    })),
  );
});

test("a secret that was sealed at once opens like any other", async () => {
  const vault = await openVault(masterKey(), undefined, randomBytes);
  const sealed = vault.sealNow("whsec_é", "webhook 1");
  expect(sealed.length).toBe((await vault.seal("whsec_é", "webhook 1")).length);
  expect(await vault.open(sealed, "webhook 1")).toBe("whsec_é");
  expect(await failures([vault.open(sealed, "webhook 2")])).toMatchObject([{ code: "failed" }]);
});

test("a secret with any changed byte does not open", async () => {
  const vault = await openVault(masterKey(), undefined, randomBytes);
  const sealed = await vault.seal("secret", "p");
  await vault.openOften(sealed, "p");
  const changed = Array.from(sealed.keys(), (index) => sealed.map((byte, at) => (at === index ? byte ^ 1 : byte)));
  for (const failure of await failures(changed.flatMap((each) => [vault.open(each, "p"), vault.openOften(each, "p")])))
    expect(failure).toMatchObject({ code: "failed" });
});

test("the same secret is sealed differently each time, with a random 12-byte nonce and a 16-byte tag", async () => {
  const vault = await openVault(masterKey(), undefined, randomBytes);
  const [first, second] = [await vault.seal("secret", "p"), await vault.seal("secret", "p")];
  expect(first.length).toBe(12 + "secret".length + 16);
  expect(Buffer.compare(first.subarray(0, 12), second.subarray(0, 12))).not.toBe(0);
});

test("a cached secret is opened again when it has changed", async () => {
  const vault = await openVault(masterKey(), undefined, randomBytes);
  const [first, second] = [await vault.seal("one", "p"), await vault.seal("two", "p")];
  for (const [sealed, secret] of [
    [first, "one"],
    [second, "two"],
    [second, "two"],
    [first, "one"],
  ] as const)
    expect(await vault.openOften(sealed, "p")).toBe(secret);
  // The vault caches one secret for each purpose, so the secret of `q` does not replace that of `p`.
  const other = await vault.seal("three", "q");
  expect([await vault.openOften(other, "q"), await vault.openOften(first, "p")]).toEqual(["three", "one"]);
});

test("the master key is made once, also by several programs at once, and then stays", async () => {
  const path = masterKey();
  const vaults = await Promise.all(Array.from({ length: 4 }, () => openVault(path, undefined, randomBytes)));
  const text = readFileSync(path, "utf8");
  expect(text).toMatch(/^[0-9a-f]{64}\n$/);
  expect(new Set(vaults.map(({ fingerprint }) => fingerprint)).size).toBe(1);
  expect((await openVault(path, vaults[0]?.fingerprint, randomBytes)).fingerprint).toMatch(/^[0-9a-f]{16}$/);
  expect(readFileSync(path, "utf8")).toBe(text);
  expect(readdirSync(join(path, ".."))).toEqual(["master.key"]);
});

test("a program that loses the race to make the master key takes the winner's key", async () => {
  const path = masterKey();
  const others = randomBytes(32);
  const vault = await openVault(path, undefined, (bytes) => {
    if (!existsSync(path)) writeFileSync(path, `${others.toHex()}\n`);
    return randomBytes(bytes);
  });
  expect(readFileSync(path, "utf8")).toBe(`${others.toHex()}\n`);
  expect(vault.fingerprint).toBe((await openVault(path, undefined, randomBytes)).fingerprint);
});

test("drafts of the master key from killed processes are harmless, and are removed; other files stay", async () => {
  const path = masterKey();
  const drafts = ["1", String(process.pid), "0123456789abcdef"].map((each) => `${path}.${each}.new`);
  const others = [`${path}.old`, `${path}.backup.new`, `${path}x.1.new`];
  for (const each of [...drafts, ...others]) writeFileSync(each, "half");
  const { fingerprint } = await openVault(path, undefined, randomBytes);
  const names = () => readdirSync(join(path, "..")).map((name) => join(path, "..", name));
  expect(names().toSorted()).toEqual([path, ...others].toSorted());
  writeFileSync(drafts[0] ?? "", "half");
  expect((await openVault(path, fingerprint, randomBytes)).fingerprint).toBe(fingerprint);
  expect(names().toSorted()).toEqual([path, ...others].toSorted());
});

test("a process whose draft was removed by the maker of the key takes that key", async () => {
  const path = masterKey();
  let other: Promise<Vault> | undefined;
  const vault = await openVault(path, undefined, (bytes) => {
    // The call for 32 bytes makes the master key. By then, the vault has opened the draft of the key file.
    if (bytes === 32) {
      expect(readdirSync(join(path, ".."))).toHaveLength(1);
      writeFileSync(path, `${"ab".repeat(32)}\n`);
      other ??= openVault(path, undefined, randomBytes);
      for (const name of readdirSync(join(path, ".."))) if (name.endsWith(".partial")) rmSync(join(path, "..", name));
    }
    return randomBytes(bytes);
  });
  expect((await other)?.fingerprint).toBe(vault.fingerprint);
  expect(readFileSync(path, "utf8")).toBe(`${"ab".repeat(32)}\n`);
  expect(readdirSync(join(path, ".."))).toEqual(["master.key"]);
});

test("a master key that cannot be read or made is refused", async () => {
  const folder = temporaryFolder();
  const refused = await failures([
    openVault(folder, undefined, randomBytes),
    openVault(join(folder, "missing", "master.key"), undefined, randomBytes),
  ]);
  expect(refused).toMatchObject([
    { code: "failed", message: expect.stringContaining(`cannot read the master key ${folder}: `) },
    { code: "failed", message: expect.stringContaining(`cannot make the master key ${folder}/missing/master.key: `) },
  ]);
});

test("a master key with white space around it is the same key", async () => {
  const path = masterKey();
  const { fingerprint } = await openVault(path, undefined, randomBytes);
  writeFileSync(path, ` ${readFileSync(path, "utf8").trim()} \n\n`);
  expect((await openVault(path, fingerprint, randomBytes)).fingerprint).toBe(fingerprint);
});
