import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryFolder } from "../support/app.ts";
import { Program } from "../support/program.ts";
import { customer } from "../support/records.ts";

test("a backup shows the name of its file without control characters", async () => {
  const program = await Program.withShop();
  const { status, stdout } = await program.run(["backup", join(temporaryFolder(), "a\u001b[31m\u009bb")]);
  expect(status).toBe(0);
  expect(stdout).toMatch(/^[^\p{Cc}]*a<U\+001B>\[31m<U\+009B>b: [^\p{Cc}]*\n$/u);
});

test("an import reads /dev/null, which has no records, and a named pipe", async () => {
  const program = await Program.withShop();
  expect(await program.json(["import", "/dev/null"])).toEqual({ read: 0, changed: 0, events: 0 });
  const pipe = join(temporaryFolder(), "pipe");
  expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
  const writer = Bun.spawn(["sh", "-c", 'cat > "$1"', "sh", pipe], { stdin: Buffer.from(JSON.stringify(customer(1))) });
  expect(await program.json(["import", pipe])).toEqual({ read: 1, changed: 1, events: 0 });
  await writer.exited;
});

test("an address is not a shop's domain", async () => {
  const program = await Program.withShop();
  const { status, stderr } = await program.run(["shop", "add", "1.2.3.4"]);
  expect({ status, stderr }).toEqual({
    status: 2,
    stderr: 'sds: "1.2.3.4" is not a shop\'s domain: it must be a host name, like alpha.myshopify.com\n',
  });
});

const KEY = `cad_pk_${"0123456789ab".repeat(4)}`;

test.each([
  [["key", "revoke", KEY], "there is no key cad_pk_01234567[hidden]"],
  [[KEY], "unknown command 'cad_pk_01234567[hidden]'"],
  [["delivery", "list", `--${KEY}`], "unknown option '--cad_pk_01234567[hidden]'"],
  [["delivery", "show", `whsec_${"A/+".repeat(14)}=`], "there is no delivery [hidden]"],
])("a whole key or secret in %j is not repeated", async (args, message) => {
  const program = await Program.withShop();
  const { stdout, stderr } = await program.run(args);
  expect(stdout).toBe("");
  expect(stderr).toContain(message);
  expect(stderr).not.toContain("456789ab0123");
});
