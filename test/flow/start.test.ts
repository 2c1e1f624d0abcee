import { expect, test } from "bun:test";
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
