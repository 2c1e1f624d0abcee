import { expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TRIGGER_HANDLES } from "../../src/domain/events/trigger.ts";
import { temporaryFolder } from "../support/app.ts";
import { LINE } from "../support/connected.ts";
import { PlatformProcess } from "../support/platform-process.ts";
import { failure, Program } from "../support/program.ts";

const DOMAIN = "alpha.myshopify.com";

test("commands show the inbox and a person's data, and write the files for the platform", async () => {
  const platform = await new PlatformProcess().start();
  await platform.tell("addShop");
  const program = new Program(undefined, platform.env);
  await program.json(["shop", "connect", DOMAIN, "--client-credentials"]);
  const firstName = "A\u202eda\u009b\u007f \u2067\u2028 Zoë";
  const customer = await platform.tell("createCustomer", { email: "ada@example.com", firstName });
  await program.json(["sync"]);
  expect(JSON.stringify(await program.json(["inbox", "list"]))).toBe("[]");
  expect(await program.json(["inbox", "retry", "--failed"])).toEqual({ retried: 0 });
  expect(await program.run(["inbox", "retry", "7"])).toEqual(failure(3, "there is no item with the id 7 in the inbox"));
  expect(await program.json(["customer", "export", customer])).toMatchObject({
    customer: { email: "ada@example.com" },
    subscriptions: [],
  });
  const { stdout } = await program.run(["customer", "export", customer]);
  expect(stdout).toContain('"A\\u202eda\\u009b\\u007f \\u2067\\u2028 Zoë"');
  expect(JSON.parse(stdout)).toMatchObject({ customer: { firstName } });
  expect((await program.run(["customer", "export", "gid://shopify/Customer/1"])).status).toBe(3);

  const folder = join(temporaryFolder(), "app");
  await program.json(["platform", "files", folder, "--url", "https://sds.example.com/"]);
  const app = Bun.TOML.parse(readFileSync(join(folder, "shopify.app.toml"), "utf8")) as {
    webhooks: {
      api_version: string;
      subscriptions: { topics?: string[]; compliance_topics?: string[]; uri: string }[];
    };
  };
  expect(app.webhooks.api_version).toBe("2026-07");
  const [subscription, compliance] = app.webhooks.subscriptions;
  expect(subscription?.topics).toContain("subscription_billing_attempts/failure");
  expect(subscription?.uri).toBe("https://sds.example.com/platform/webhooks");
  expect(compliance?.compliance_topics).toEqual(["customers/data_request", "customers/redact", "shop/redact"]);
  const extension = Bun.TOML.parse(
    readFileSync(join(folder, "extensions/billing-attempt-failed/shopify.extension.toml"), "utf8"),
  );
  expect(extension).toMatchObject({ extensions: [{ type: "flow_trigger", handle: "billing-attempt-failed" }] });
  expect(existsSync(join(folder, "extensions/streak-milestone-reached/shopify.extension.toml"))).toBe(true);
  expect((await program.run(["platform", "files", folder])).status).toBe(2);
  await expectMerge(program);
  const files = (...without: string[]) =>
    program.run(["platform", "files", folder, "--force", ...without.flatMap((scope) => ["--without", scope])]);
  expect((await files("read_own_subscription_contracts", "read_all_orders")).stderr).toStartWith(
    "Until the platform grants read_own_subscription_contracts, no shop can be connected.",
  );
  const text = readFileSync(join(folder, "shopify.app.toml"), "utf8");
  expect(text).toContain('scopes = "read_customers,read_orders,read_products"');
  expect(text).not.toContain("subscription_contracts/");
  expect(await files("read_everything")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('--without is "read_everything": it must be one of '),
  });
});

test("a shop that is connected with the app's key needs no file of the key afterwards", async () => {
  const platform = await new PlatformProcess().start();
  await platform.tell("addShop");
  const { SDS_PLATFORM_URL, SDS_PLATFORM_CLIENT_ID } = platform.env;
  const program = new Program(undefined, { SDS_PLATFORM_URL, SDS_PLATFORM_CLIENT_ID } as Record<string, string>);
  const file = join(temporaryFolder(), "app-key.pem");
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  writeFileSync(file, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o644 });
  const shown = await program.run(["platform", "jwk", file]);
  expect(shown.stderr).toContain(`can read or change ${file}`);
  await platform.tell("setAppKey", { jwk: JSON.parse(shown.stdout) });
  chmodSync(file, 0o600);
  const connect = ["shop", "connect", DOMAIN, "--app-key-file", file];
  expect(await program.json(connect)).toMatchObject({ domain: DOMAIN, kind: "app_key" });
  rmSync(file);
  await platform.tell("revokeTokens");
  expect((await program.run(["sync", DOMAIN])).status).toBe(0);
  expect(await program.run(connect)).toMatchObject({ status: 2, stderr: expect.stringContaining("does not exist") });
});

/** Expects that an app's existing files keep their content, and that a file that cannot be read is not changed. */
async function expectMerge(program: Program): Promise<void> {
  const folder = temporaryFolder();
  const file = join(folder, "shopify.app.toml");
  const stored = '# mine\nclient_id = "client"\nembedded = true # yes\n\n[access_scopes]\nscopes = "read_themes"\n';
  const merge = (...flags: string[]) =>
    program.run(["platform", "files", folder, "--url", "https://sds.example.com", ...flags]);
  writeFileSync(file, "client_id = \n");
  expect(await merge()).toMatchObject({ status: 1, stderr: expect.stringContaining("nothing was written") });
  writeFileSync(file, stored);
  expect((await merge("--force")).status).toBe(1);
  expect(readdirSync(folder)).toEqual(["shopify.app.toml"]);
  expect((await merge()).stdout).toContain("+ scopes: read_own_subscription_contracts, read_customers, read_orders");
  const merged = readFileSync(file, "utf8");
  expect(merged.replace(/,read_own.*(?=")/, "")).toStartWith(stored);
  expect(readdirSync(join(folder, "extensions"))).toHaveLength(TRIGGER_HANDLES.length);
  const extension = join(folder, "extensions/subscription-created/shopify.extension.toml");
  writeFileSync(extension, "# mine");
  expect(await merge()).toMatchObject({ status: 0, stdout: "", stderr: expect.stringContaining("is kept") });
  expect([readFileSync(file, "utf8"), readFileSync(extension, "utf8")]).toEqual([merged, "# mine"]);
}

test("sds shop rename gives a shop its new domain while serve runs, and keeps its keys and rows", async () => {
  const platform = await new PlatformProcess().start();
  await platform.tell("addShop", {});
  const customer = await platform.tell("createCustomer", { email: "ada@example.com" });
  await platform.tell("createContract", { customer, lines: [LINE] });
  const program = await Program.withShop(platform.env);
  const server = await program.serve();
  await program.run(["shop", "connect", DOMAIN, "--client-credentials"]);
  await program.run(["sync"]);
  const { key } = await program.json<{ key: string }>(["key", "create", "--label", "x"]);
  const headers = { Authorization: `Bearer ${key}` };
  const rows = async () => (await fetch(`${server.url}/api/v1/subscriptions`, { headers })).text();
  const before = await rows();
  const renamed = "renamed.myshopify.com";
  await platform.tell("renameShop", { name: renamed });
  expect((await program.run(["sync", "--since", "2h"])).status).toBe(0);
  const warning = `the shop has the domain ${renamed} now: run \`sds shop rename ${DOMAIN} ${renamed}\``;
  expect((await program.run(["status"])).stdout).toContain(`${DOMAIN}: ${warning}; since `);
  expect(await program.json(["shop", "rename", DOMAIN, renamed])).toEqual({ domain: renamed });
  expect(await rows()).toBe(before);
  expect((await program.run(["sync", renamed, "--since", "2h"])).status).toBe(0);
  expect((await program.run(["sync", DOMAIN])).status).toBe(0);
  expect(await rows()).toBe(before);
  expect((await program.run(["status"])).stdout).not.toContain(warning);
  expect(await program.run(["shop", "rename", "unknown.example.com", "a.example.com"])).toMatchObject({ status: 3 });
  expect(await program.run(["shop", "rename", renamed, "UPPER"])).toMatchObject({ status: 2 });
  expect(await program.run(["shop", "add", DOMAIN])).toMatchObject({
    status: 1,
    stderr: `sds: the shop ${DOMAIN} is now ${renamed}\n`,
  });
  expect(await program.run(["shop", "remove", DOMAIN, "--yes"])).toMatchObject({ status: 0 });
  expect((await program.run(["shop", "list", "--json"])).stdout.trim()).toBe("[]");
});

test("sds shop connect, sync and status say which approval for customer data is missing", async () => {
  const platform = await new PlatformProcess().start();
  await platform.tell("addShop", {});
  const customer = await platform.tell("createCustomer", { email: "ada@example.com" });
  await platform.tell("createContract", { customer, lines: [LINE] });
  await platform.tell("setApprovedLevel", { index: 1 });
  const program = await Program.withShop(platform.env);
  const level = "the app has no access to protected customer data, level 2";
  const connected = await program.run(["shop", "connect", DOMAIN, "--client-credentials"]);
  const loaded = await program.run(["sync"]);
  for (const { status, stderr } of [connected, loaded]) {
    expect(status).toBe(0);
    expect(stderr).toContain(`sds: warning: ${level}`);
    expect(stderr.split(level)).toHaveLength(2);
  }
  expect((await program.run(["status"])).stdout).toContain(`${DOMAIN}: ${level}`);
  expect((await program.run(["shop", "show", DOMAIN])).stdout).toContain(level);
});
