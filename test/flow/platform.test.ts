import { expect, test } from "bun:test";
import { readRows } from "../support/api-shop.ts";
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
