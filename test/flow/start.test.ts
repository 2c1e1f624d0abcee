import { expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ENGINE, Program } from "../support/program.ts";

test("serve says where its data is, how many shops it has, and the addresses of settings page and docs", async () => {
  const program = await Program.withShop();
  const { output, url } = await program.serve();
  expect(output).toContain(`listening on ${url}\n`);
  expect(output).toContain(ENGINE === "sqlite" ? `  data           ${program.data}\n` : "  data           postgres");
  expect(output).toContain("  shops          1\n");
  expect(output).toContain(`  settings page  ${url}/admin (sign in with: sds admin link)\n`);
  expect(output).toContain(`  documentation  ${url}/docs\n`);
  expect(output).not.toContain("other machines");
});

test("serve without a shop says how to add one, and warns of an address for other machines", async () => {
  const { output, url } = await new Program().serve(["serve", "--host", "0.0.0.0", "--port", "0"]);
  expect(output).toContain("  shops          no shop yet: sds shop add alpha.myshopify.com\n");
  expect(output).toContain("other machines can reach this address");
  expect(output).toContain(`  documentation  ${url.replace("0.0.0.0", "127.0.0.1")}/docs\n`);
});

test("a secret file that others may read is warned of, by serve and by commands", async () => {
  const program = await Program.withShop();
  const masterKey = join(program.data, "master.key");
  expect((await program.run(["key", "list"])).stderr).not.toContain("every user");
  chmodSync(masterKey, 0o644);
  const warning = (file: string) => `every user of this machine can read or change ${file}: run chmod 600 ${file}`;
  expect((await program.run(["key", "list"])).stderr).toContain(`sds: warning: ${warning(masterKey)}\n`);
  const platformSecret = join(program.data, "platform-secret");
  writeFileSync(platformSecret, "secret\n");
  chmodSync(platformSecret, 0o644);
  const { output, url } = await program.serve(undefined, { SDS_PLATFORM_SECRET_FILE: platformSecret });
  expect(output).toContain(warning(masterKey));
  expect(output).toContain(warning(platformSecret));

  const file = join(program.data, "key");
  writeFileSync(file, `cad_pk_${"a".repeat(48)}\n`);
  chmodSync(file, 0o644);
  const pull = ["pull", "--url", url, "--resource", "orders", "--state", join(program.data, "state")];
  const { stderr } = await program.run(pull, { env: { SDS_KEY_FILE: file } });
  expect(stderr).toContain(`sds: warning: ${warning(file)}\n`);
});

test.each(["10.99.99.99", "none.invalid", "a b", "999.1.1.1"])(
  "serve names the remedy for the host %j",
  async (host) => {
    const { status, stderr } = await new Program().run(["serve", "--host", host, "--port", "0"]);
    expect(status).toBe(1);
    expect(stderr).toBe(
      `sds: cannot listen on ${host} port 0: this machine has no such address: use one of its own, such as 127.0.0.1\n`,
    );
  },
);
