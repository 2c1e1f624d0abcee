import { expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import {
  ATTEMPT,
  CONTRACT,
  CONTRACTS_SINCE,
  COUNT_AND_ATTEMPTS,
  CYCLE,
  CYCLES,
  FLOW,
  INSTALLATION,
  NODES,
  ORDER,
} from "./stand-in-operations.ts";
import { DOMAIN, oneContract, PATH, started } from "./stand-in-started.ts";

test("the queries of an app are answered with the real schema", async () => {
  const { standIn, shop, query } = await started();
  shop.seed({ contracts: 12, renewals: 2 });
  const id = oneContract(shop);
  const failed = shop.startAttempt(id, 1);
  shop.failAttempt(failed);
  const order = shop.succeedAttempt(shop.startAttempt(id, 1));
  const challenged = shop.startAttempt(id, 2);
  shop.challenge(challenged);
  const answers = [
    await query(CONTRACT, { id }),
    await query(ORDER, { id: order }),
    await query(CYCLE, { c: id, d: "2026-03-31T00:00:00Z" }),
    await query(CYCLES, { c: id, dates: null }),
    await query(ATTEMPT, { id: failed }),
    await query(ATTEMPT, { id: challenged }),
    await query(CONTRACTS_SINCE, { q: "updated_at:>='2026-02-01T00:00:00Z' AND updated_at:<2027-01-01" }),
    await query(INSTALLATION),
    await query(NODES, { ids: [id, order] }),
    await query(COUNT_AND_ATTEMPTS),
  ];
  expect(answers.map(({ errors }) => errors)).toEqual(answers.map(() => undefined));
  expect(standIn.invalid).toEqual([]);
  expect(answers[2]?.data).toMatchObject({
    subscriptionBillingCycle: {
      cycleIndex: 1,
      cycleEndAt: "2026-04-01T12:00:00Z",
      billingAttemptExpectedDate: "2026-04-01T12:00:00Z",
      status: "BILLED",
    },
  });
  expect(answers[4]?.data).toMatchObject({
    subscriptionBillingAttempt: { state: { error: { __typename: "SubscriptionBillingAttemptPaymentError" } } },
  });
  expect(standIn.requests.at(-1)).toMatchObject({ operation: "CountAndAttempts", outcome: "ok", shop: DOMAIN });
});

test("the cycles of a range come in both directions, and have no end of their own", async () => {
  const { shop, query } = await started();
  const c = oneContract(shop);
  shop.skipCycle(c, 2);
  const dates = { startDate: "2026-04-01T12:00:00Z", endDate: "2026-07-01T12:00:00Z" };
  const forward = await query(CYCLES, { c, dates });
  expect(forward.data).toMatchObject({
    subscriptionBillingCycles: { nodes: [{ cycleIndex: 1 }, { cycleIndex: 2, skipped: true }, { cycleIndex: 3 }] },
  });
  expect((await query(CYCLES, { c, dates, reverse: true })).data).toMatchObject({
    subscriptionBillingCycles: {
      pageInfo: { hasNextPage: true },
      nodes: [{ cycleIndex: 4 }, { cycleIndex: 3 }, { cycleIndex: 2 }],
    },
    fifth: { nodes: [{ cycleIndex: 5 }] },
  });
});

test("pages stay in order while rows change", async () => {
  const { clock, shop, query } = await started();
  shop.seed({ contracts: 25 });
  const seen = new Set<string>();
  let after: string | null = null;
  for (let page = 0; page < 4; page++) {
    const { data } = await query(CONTRACTS_SINCE, { after, q: "updated_at:>2026-01-01T00:00:00Z" });
    const { pageInfo, nodes } = (
      data as { subscriptionContracts: { pageInfo: { endCursor: string }; nodes: { id: string }[] } }
    ).subscriptionContracts;
    for (const { id } of nodes) seen.add(id);
    after = pageInfo.endCursor;
    clock.ms += 1000;
    if (page === 0) shop.pause(nodes[0]?.id ?? "");
  }
  expect(seen.size).toBe(25);
});

test("queries cost points, and are throttled until enough points are back", async () => {
  const { standIn, shop, query } = await started({ maximumAvailable: 100, restoreRate: 1000, maxQueryCost: 15 });
  shop.seed({ contracts: 3 });
  const text = "query Some($n: Int!) { subscriptionContracts(first: $n) { nodes { id customer { id } } } }";
  expect((await query(text, { n: 10 })).extensions?.cost).toMatchObject({ requestedQueryCost: 10, actualQueryCost: 6 });
  expect((await query(text, { n: 50 })).errors?.[0]?.extensions?.code).toBe("MAX_COST_EXCEEDED");
  standIn.bucket(DOMAIN).drainTo(-20);
  const throttled = await query(text, { n: 10 });
  expect(throttled.errors?.[0]).toMatchObject({ message: "Throttled", extensions: { code: "THROTTLED" } });
  expect(throttled.extensions?.cost.actualQueryCost).toBeNull();
  expect(standIn.throttled).toBe(1);
  await eventually(async () => (await query(text, { n: 10 })).errors === undefined);
});

test("tokens end, rotate and can be revoked", async () => {
  const { clock, shop, post, grant } = await started();
  const { access_token, expires_in } = await grant({ grant_type: "client_credentials" });
  expect(expires_in).toBe(86_399);
  const status = async (token: unknown) => (await post(PATH, { query: "{ shop { id } }" }, String(token))).status;
  expect(await status(access_token)).toBe(200);
  clock.ms += 86_400_000;
  expect(await status(access_token)).toBe(401);
  const { accessToken, refreshToken } = shop.issuePair();
  const next = await grant({ grant_type: "refresh_token", refresh_token: refreshToken });
  expect([await status(accessToken), await status(next["access_token"])]).toEqual([200, 200]);
  // A refresh token is valid until its replacement is used.
  const refresh = (token: unknown) => grant({ grant_type: "refresh_token", refresh_token: String(token) });
  const again = await refresh(refreshToken);
  expect((await refresh(again["refresh_token"]))["status"]).toBe(200);
  for (const ended of [refreshToken, next["refresh_token"]]) {
    expect(await refresh(ended)).toEqual({ status: 400, error: "invalid_grant" });
  }
  expect(await grant({ grant_type: "client_credentials", client_secret: "wrong" })).toEqual({
    status: 401,
    error: "invalid_client",
  });
  shop.uninstall();
  expect(await status(next["access_token"])).toBe(401);
});

test("requests that the platform would refuse are refused and noted", async () => {
  const { standIn, shop, query, post } = await started();
  expect((await query("{ shop { nothing } }")).data).toBeUndefined();
  expect((await query("query Many { customers(first: 300) { nodes { id } } }")).errors).toBeDefined();
  expect((await post("admin/api/2025-10/graphql.json", { query: "{ shop { id } }" })).status).toBe(404);
  expect(standIn.invalid).toHaveLength(3);
  shop.scopes = ["read_customers"];
  expect((await query(ORDER, { id: "gid://shopify/Order/1" })).errors?.[0]?.extensions?.code).toBe("ACCESS_DENIED");
  expect(standIn.invalid).toHaveLength(3);
});

test("triggers are accepted with exact ids", async () => {
  const { shop, query, postText, read } = await started();
  const payload = { text: "x" };
  const exact = '"payload":{"customer_id":9007199254741001}';
  await postText(`{"query":${JSON.stringify(FLOW)},"variables":{"handle":"subscription-created",${exact}}}`);
  expect(shop.workflows).toMatchObject([{ handle: "subscription-created", raw: expect.stringContaining(exact) }]);
  const refused = {
    flowTriggerReceive: {
      userErrors: [{ field: ["handle"], message: expect.stringContaining("Invalid handle 'x'.") }],
    },
  };
  expect((await query(FLOW, { handle: "x", payload })).data).toMatchObject(refused);
  const large = { handle: "subscription-created", payload: { text: "x".repeat(50_000) } };
  expect(await read(FLOW, large)).toMatchObject({ userErrors: [{ field: ["payload"] }] });
  expect(shop.workflows).toHaveLength(1);
});

test("webhooks are signed, in order, and have exact ids", async () => {
  const { standIn, shop } = await started();
  const received: { topic: string | null; genuine: boolean }[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      const expected = createHmac("sha256", "secret").update(await request.text());
      const { headers } = request;
      received.push({
        topic: headers.get("x-shopify-topic"),
        genuine: headers.get("x-shopify-hmac-sha256") === expected.digest("base64"),
      });
      return new Response(null, { status: received.length === 2 ? 500 : 200 });
    },
  });
  afterTest(() => server.stop(true));
  standIn.webhooksTo = server.url.href;
  const id = oneContract(shop);
  await standIn.settled();
  const topics = ["customers/create", "subscription_contracts/create", "orders/create", "orders/paid"];
  expect(received).toEqual(topics.map((topic) => ({ topic, genuine: true })));
  expect(standIn.undelivered.map(({ webhook }) => webhook.topic)).toEqual(["subscription_contracts/create"]);
  const [, created, order] = shop.outgoing;
  expect(created?.body).toContain(`"admin_graphql_api_id":"${id}","id":${id.split("/").at(-1)},`);
  expect(created?.eventId).toBe(order?.eventId ?? "");
});

test("discounts are split among the lines to the cent", async () => {
  const { standIn, shop, query, read } = await started();
  const customer = shop.createCustomer();
  const line = { title: "Tea", price: "3.33", variant: "gid://shopify/ProductVariant/2" };
  const contract = shop.createContract({
    customer,
    originOrder: false,
    lines: [line, line, { ...line, discounted: "3.00" }],
  });
  const order = shop.succeedAttempt(shop.startAttempt(contract, 1), {
    discounts: [{ title: "TEN", amount: "1.00", kind: "code" }],
  });
  const { data } = await query(ORDER, { id: order });
  const allocated = [...JSON.stringify(data).matchAll(/"allocatedAmountSet":\{"shopMoney":\{"amount":"([\d.]+)"/g)].map(
    ([, amount]) => Number(amount),
  );
  expect(allocated.reduce((sum, amount) => sum + amount, 0)).toBeCloseTo(1.33, 10);
  expect(data).toMatchObject({
    order: { totalDiscountsSet: { shopMoney: { amount: "1.33" } }, totalPriceSet: { shopMoney: { amount: "8.66" } } },
  });
  expect(shop.outgoing.at(-1)?.topic).toBe("subscription_contracts/update");
  expect(await read(CONTRACT, { id: contract })).toMatchObject({ nextBillingDate: "2026-05-01T12:00:00Z" });
  expect(standIn.invalid).toEqual([]);
});

test("requests fail as the test wants", async () => {
  const { standIn, shop, query, post } = await started();
  const sent = { query: FLOW, variables: { handle: "subscription-created", payload: {} } };
  standIn.fault = ({ operation, n }) => {
    if (operation === "Flow") return "lost";
    return n === 1
      ? "reset"
      : n === 2
        ? { status: 503, headers: { "Retry-After": "2" } }
        : n === 3
          ? { until: Promise.resolve() }
          : undefined;
  };
  await expect(query(INSTALLATION)).rejects.toThrow();
  const unavailable = await post(PATH, { query: INSTALLATION });
  expect([unavailable.status, unavailable.headers.get("retry-after")]).toEqual([503, "2"]);
  expect((await query(INSTALLATION)).errors).toBeUndefined();
  await expect(post(PATH, sent)).rejects.toThrow();
  await eventually(() => shop.workflows.length === 1);
});

test("as a process of its own it is controlled over HTTP", async () => {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "../support/platform/main.ts")], {
    stdout: "pipe",
    stderr: "inherit",
  });
  afterTest(() => child.kill());
  const { value } = await child.stdout.getReader().read();
  const address = /http:\S+/.exec(new TextDecoder().decode(value))?.[0] ?? "";
  const control = async (body: unknown) =>
    (await (await fetch(`${address}/control`, { method: "POST", body: JSON.stringify(body) })).json()) as {
      result: string;
    };
  await control({ do: "addShop", shop: DOMAIN });
  const ada = { email: "ada@example.com" };
  const { result: customer } = await control({ do: "createCustomer", shop: DOMAIN, with: ada });
  expect(customer).toBe("gid://shopify/Customer/9007199254741001");
  const tea = { customer, lines: [{ title: "Tea", price: "3.00" }] };
  const { result: contract } = await control({ do: "createContract", shop: DOMAIN, with: tea });
  expect(contract).toBe("gid://shopify/SubscriptionContract/9007199254741002");
  const unknown = { error: "there is no command constructor" };
  expect(await control({ do: "constructor", shop: DOMAIN })).toMatchObject(unknown);
  expect(await (await fetch(`${address}/control/workflows?shop=${DOMAIN}`)).json()).toEqual([]);
});
