import { expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TRIGGER_HANDLES } from "../../src/domain/events/trigger.ts";
import { readRows } from "../support/api-shop.ts";
import { temporaryFolder } from "../support/app.ts";
import { LINE } from "../support/connected.ts";
import { eventually } from "../support/eventually.ts";
import { PlatformProcess } from "../support/platform-process.ts";
import { failure, Program } from "../support/program.ts";
import { Receiver } from "../support/receiver.ts";

const DOMAIN = "alpha.myshopify.com";

test("a shop is connected and loaded, and a change at the platform reaches API, webhooks and commands", async () => {
  const platform = await new PlatformProcess().start();
  await platform.tell("addShop", { currency: "EUR" });
  const customer = await platform.tell("createCustomer", { email: "ada@example.com" });
  const contract = await platform.tell("createContract", { customer, lines: [LINE] });

  const program = new Program(undefined, { ...platform.env, SDS_EGRESS_ALLOW: "127.0.0.0/8" });
  const receiver = new Receiver();
  expect(await program.json(["shop", "connect", DOMAIN, "--client-credentials"])).toMatchObject({
    domain: DOMAIN,
    currency: "EUR",
    plan: "pro",
    kind: "client_credentials",
  });
  await program.json(["webhook", "set", "--url", receiver.url, "--all-topics"]);
  await program.json(["shop", "set", DOMAIN, "--triggers", "all"]);
  expect(await program.json(["sync", DOMAIN])).toMatchObject({ customers: 1, subscriptions: 1, orders: 1, events: 0 });
  const { key } = await program.json<{ key: string }>(["key", "create", "--label", "Test"]);
  const server = await program.serve();
  await platform.tell("webhooksTo", { url: `${server.url}/platform/webhooks` });
  const get = (resource: string) => readRows(server.url, key, resource);
  expect(await get("subscriptions")).toMatchObject([{ shopifyId: contract, status: "ACTIVE" }]);

  const attempt = await platform.tell("startAttempt", { id: contract, index: 1 });
  await platform.tell("failAttempt", { id: attempt, code: "CARD_DECLINED" });
  // `order.failed` must say that retries are left. A cancelled contract has no retries left, so the test waits for this
  // event before it cancels the contract.
  await receiver.gets(1);
  await platform.tell("cancel", { id: contract });
  // The program sends a shop's deliveries concurrently, so they can arrive in any order.
  const received = (await receiver.gets(3)).toSorted((a, b) => a.topic.localeCompare(b.topic));
  expect(received.map(({ topic }) => topic)).toEqual([
    "order.failed",
    "subscription.cancelled",
    "subscription.updated",
  ]);
  expect(received[0]?.json.data).toMatchObject({
    contract_id: contract,
    reason: "card_declined",
    attempt_count: 1,
    retries_exhausted: false,
    total_cents: 2500,
  });
  expect(received[1]?.json.data).toMatchObject({ churn_type: "involuntary" });
  expect(await get("subscriptions")).toMatchObject([
    { shopifyId: contract, status: "CANCELLED", nextBillingDate: null },
  ]);
  expect(await get("orders")).toMatchObject([
    { status: "UNCOLLECTIBLE", cycleNumber: 1, shopifyId: null },
    { status: "PAID", cycleNumber: 0 },
  ]);
  const workflows = await eventually(async () =>
    (await platform.workflows()).length === 2 ? platform.workflows() : undefined,
  );
  expect(workflows.map(({ handle }) => handle).toSorted()).toEqual([
    "billing-attempt-failed",
    "subscription-cancelled",
  ]);
  expect(workflows[0]?.raw).toContain(`"customer_id":${customer.split("/").at(-1)},`);
  const entries = await eventually(async () => {
    const found = await program.json<{ kind: string; status: string }[]>(["delivery", "list", "--kind", "trigger"]);
    return found.every(({ status }) => status === "delivered") && found;
  });
  expect(entries).toMatchObject([
    { topic: "subscription-cancelled", attempts: 1, lastStatusCode: 200 },
    { topic: "billing-attempt-failed" },
  ]);

  await expectDataRequest(program, platform, customer);

  // From now on, the platform delivers no webhooks.
  await platform.tell("webhooksTo");
  await platform.tell("activate", { id: contract });
  expect(await program.json(["sync", "--since", "1h"])).toMatchObject({ events: 1 });
  expect((await receiver.gets(4)).at(-1)?.json.data).toMatchObject({ status: "ACTIVE" });
  // The sync repaired two rows: the contract, and its order, because the order's payment can be retried again.
  await eventually(async () => (await program.json<unknown[]>(["inbox", "list"])).length === 0);
  expect(await program.json(["shop", "show", DOMAIN])).toMatchObject({
    platform: { connected: true, repairs: 2, inbox: { waiting: 0, failed: 0 } },
  });
  const { stdout: shown } = await program.run(["shop", "show", DOMAIN]);
  expect(shown).toMatch(/^repairs +2 rows changed by the last reconciliation$/m);
  expect(await platform.invalid()).toEqual([]);
});

test("a sync that is killed continues where it stopped, and queues no event twice", async () => {
  // The platform is slow, so that the sync can be killed while it runs.
  const platform = await new PlatformProcess().start("--restore-rate", "2500", "--maximum-available", "1000");
  await platform.tell("addShop");
  await platform.tell("seed", { contracts: 600, linesEach: 1, renewals: 1 });
  const program = new Program(undefined, platform.env);
  const receiver = new Receiver();
  await program.json(["shop", "connect", DOMAIN, "--client-credentials"]);
  await program.json(["webhook", "set", "--url", receiver.url, "--all-topics"], {
    env: { SDS_EGRESS_ALLOW: "127.0.0.0/8" },
  });
  let killed = 0;
  for (let requests = 4, ended = false; !ended; requests += 2) {
    const before = await platform.requests();
    const { pid, exited } = await program.start(["sync", "--events"]);
    let status: number | undefined;
    const ending = exited.then((code) => {
      status = code;
    });
    await eventually(async () => status !== undefined || (await platform.requests()) >= before + requests);
    if (status === undefined) process.kill(pid, "SIGKILL");
    await ending;
    ended = status === 0;
    if (!ended) killed += 1;
  }
  expect(killed).toBeGreaterThan(1);
  const entries = await program.json<{ id: string; topic: string }[]>(["delivery", "list", "--limit", "10000"]);
  const topics = Map.groupBy(entries, ({ topic }) => topic);
  expect([topics.get("subscription.created")?.length, topics.get("order.charged")?.length, entries.length]).toEqual([
    600, 1200, 1800,
  ]);
});

test("every acknowledged webhook is processed, even if the program is killed again and again", async () => {
  const platform = await new PlatformProcess().start();
  await platform.tell("addShop");
  const program = new Program(undefined, { ...platform.env, SDS_EGRESS_ALLOW: "127.0.0.0/8" });
  await program.json(["shop", "connect", DOMAIN, "--client-credentials"]);
  await program.json(["webhook", "set", "--url", "https://127.0.0.1:9999/", "--all-topics"]);
  const { key } = await program.json<{ key: string }>(["key", "create", "--label", "Test"]);
  const contracts: string[] = [];
  for (let round = 0; round < 4; round += 1) {
    const server = await program.serve();
    await platform.tell("webhooksTo", { url: `${server.url}/platform/webhooks` });
    for (let n = 0; n < 15; n += 1) {
      const customer = await platform.tell("createCustomer", { email: `${round}-${n}@example.com` });
      contracts.push(await platform.tell("createContract", { customer, lines: [LINE] }));
    }
    await server.stop("SIGKILL");
  }
  const server = await program.serve();
  const seen = await eventually(async () => {
    // A webhook about an order waits half a minute for further webhooks. The test does not wait for webhooks about
    // orders, because reading a contract also reads its orders.
    const waiting = await program.json<{ topic: string }[]>(["inbox", "list", "--limit", "1000"]);
    if (waiting.some(({ topic }) => !topic.startsWith("orders/"))) return undefined;
    return (await readRows(server.url, key, "subscriptions")).map(({ shopifyId }) => String(shopifyId));
  });
  // The platform would repeat webhooks that were not acknowledged. Here a reconciliation finds their changes.
  const lost = await platform.undelivered();
  if (lost === 0) expect(seen.toSorted()).toEqual(contracts.toSorted());
  await program.json(["sync", "--since", "1h"]);
  const entries = await program.json<{ topic: string }[]>(["delivery", "list", "--limit", "10000"]);
  expect(entries.filter(({ topic }) => topic === "subscription.created")).toHaveLength(contracts.length);
  expect(entries.filter(({ topic }) => topic === "order.charged")).toHaveLength(contracts.length);
});

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

/** Expects that `serve` receives a request for data, and shows it until the operator notes the answer. */
async function expectDataRequest(program: Program, platform: PlatformProcess, customer: string): Promise<void> {
  await platform.tell("requestData", { id: customer });
  const shown = async () =>
    (await program.json<{ dataRequests: { requestedAt: string; dueAt: string }[] }>(["shop", "show", DOMAIN]))
      .dataRequests;
  const [request] = await eventually(async () => {
    const requests = await shown();
    return requests.length === 1 && requests;
  });
  const { requestedAt = "", dueAt = "" } = request ?? {};
  expect(request).toEqual({ customer, requestedAt, dueAt } as never);
  expect(Date.parse(dueAt) - Date.parse(requestedAt)).toBe(30 * 86_400_000);
  expect((await program.run(["shop", "show", DOMAIN])).stdout).toContain(`${customer} until ${dueAt}`);
  const answered = ["customer", "answered", customer];
  expect(await program.run(answered)).toEqual({ status: 0, stdout: "", stderr: "Noted 1 request as answered.\n" });
  expect(await shown()).toEqual([]);
  expect(await program.run(answered)).toEqual(failure(3, `there is no open request for the data of ${customer}`));
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
