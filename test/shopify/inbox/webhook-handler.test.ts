import { describe, expect, test } from "bun:test";
import { connectionText, shopStatus } from "../../../src/actions/shop.ts";
import {
  type ConnectedShop,
  connected,
  DOMAIN,
  HOUR_MS,
  withContract,
  withMirroredContract,
} from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";

/** Sends a webhook that the platform itself would not send now. */
async function send(all: ConnectedShop, topic: string, payload: object): Promise<void> {
  await post(all, topic, payload);
  await all.processed();
}

/** Posts a webhook, without waiting for its processing. */
async function post(
  all: ConnectedShop,
  topic: string,
  payload: object,
  { shop = DOMAIN, sentAt = all.test.clock.ms } = {},
): Promise<void> {
  const id = crypto.randomUUID();
  const triggeredAt = new Date(sentAt).toISOString();
  await all.send({ shop, topic, body: JSON.stringify(payload), id, eventId: id, triggeredAt });
}

async function disconnect({ test, shop }: ConnectedShop): Promise<void> {
  await test.app.store.connections.disconnect(shop.shop.id, Number.MAX_SAFE_INTEGER);
}

describe("a merge of customers", () => {
  test("keeps one and redacts the other", async () => {
    const all = await connected();
    const [kept, gone] = [1, 2].map((n) => all.remote.createCustomer({ email: `${n}@example.com`, firstName: "Ada" }));
    await all.deliverAll();
    all.remote.updateCustomer(kept ?? "", { lastName: "Lovelace" });
    all.remote.outgoing.length = 0;
    all.test.clock.ms += 60_000;
    await send(all, "customers/merge", {
      admin_graphql_api_customer_kept_id: kept,
      admin_graphql_api_customer_deleted_id: gone,
    });
    const customers = await all.shop.all("customers");
    const find = (gid: string | undefined) => customers.find(({ shopifyId }) => shopifyId === gid);
    expect(find(kept)).toMatchObject({ email: "1@example.com", lastName: "Lovelace" });
    expect(find(gone)).toMatchObject({ email: null, firstName: null });
    expect(await all.inbox()).toEqual([]);
  });

  test("changes nothing if the platform no longer has the customers", async () => {
    const all = await connected();
    await send(all, "customers/merge", { admin_graphql_api_customer_kept_id: "gid://shopify/Customer/1" });
    expect(await all.shop.all("customers")).toEqual([]);
    expect(await all.inbox()).toEqual([]);
  });
});

test("an order reads each of its contracts again, and an order without contracts reads none", async () => {
  const { all, contract } = await withMirroredContract();
  all.remote.updateOrder(all.remote.originOrder(contract) ?? "", { lines: [{ title: "Tea", price: "3.00" }] });
  await all.deliverAll();
  expect(await all.shop.all("orders")).toMatchObject([{ totalCents: 300 }]);
  const begun = all.platform.requests.length;
  all.remote.placeOrder();
  await all.deliverAll();
  expect(new Set(all.operations(begun))).toEqual(new Set(["Nodes"]));
  await send(all, "orders/updated", { id: 7 });
  expect(await all.inbox()).toEqual([]);
});

describe("a webhook that is older than the last reading", () => {
  /** Makes a contract with an order. The program read the whole contract at `beganAt`. */
  async function read() {
    const { all, contract } = await withMirroredContract();
    all.test.clock.ms += HOUR_MS;
    const order = all.remote.originOrder(contract) ?? "";
    const readAt = all.test.clock.ms;
    await send(all, "subscription_contracts/update", { admin_graphql_api_id: contract });
    all.test.clock.ms += HOUR_MS;
    const ask = async (topic: string, payload: object, sentAt: number) => {
      const before = all.platform.requests.length;
      await post(all, topic, payload, { sentAt });
      await all.processed();
      expect(await all.inbox()).toEqual([]);
      return all.operations(before);
    };
    // The webhook first waited three seconds for further webhooks. Only then did the program read the contract.
    return { all, contract, order, beganAt: readAt + 3_000, ask };
  }

  test("of its contract needs no query, unless it is less than two seconds older", async () => {
    const { contract, beganAt, ask } = await read();
    const payload = { admin_graphql_api_id: contract };
    expect(await ask("subscription_contracts/update", payload, beganAt - 2_001)).toEqual([]);
    const attempt = { admin_graphql_api_subscription_contract_id: contract };
    expect(await ask("subscription_billing_attempts/success", attempt, beganAt - 2_001)).toEqual([]);
    expect(await ask("subscription_contracts/update", payload, beganAt - 2_000)).toContain("BillingCycles");
  });

  test("of its contract still needs a query for a charged order, which readings of the contract leave out", async () => {
    const { all, contract, order, beganAt, ask } = await read();
    all.remote.updateOrder(order, { lines: [{ title: "Tea", price: "3.00" }] });
    all.remote.outgoing.length = 0;
    const operationsOf = () => ask("orders/updated", { admin_graphql_api_id: order }, beganAt - 60_000);
    const asked = await operationsOf();
    expect(asked).toContain("BillingCycles");
    // The mirror knows the contracts of the order, so the contract and the order are read in one query.
    expect(asked.filter((name) => name === "Nodes")).toHaveLength(1);
    expect(await all.shop.all("orders")).toMatchObject([{ totalCents: 300 }]);
    // The first webhook also read the order, so the second webhook needs no query.
    expect(await operationsOf()).toEqual([]);
    expect(await ask("subscription_contracts/update", { admin_graphql_api_id: contract }, beganAt)).toEqual([]);
  });

  test("is processed together with a newer one, with the orders that any of them names", async () => {
    const { all, contract, order, beganAt } = await read();
    all.remote.updateOrder(order, { lines: [{ title: "Tea", price: "3.00" }] });
    all.remote.outgoing.length = 0;
    const attempt = { admin_graphql_api_subscription_contract_id: contract, admin_graphql_api_order_id: order };
    await post(all, "subscription_contracts/update", { admin_graphql_api_id: contract }, { sentAt: beganAt - 60_000 });
    await post(all, "subscription_billing_attempts/success", attempt, { sentAt: beganAt + 60_000 });
    await all.processed();
    expect(await all.shop.all("orders")).toMatchObject([{ totalCents: 300 }]);
  });

  test("needs a query if a clock that was ahead noted the reading", async () => {
    const { all, contract, beganAt, ask } = await read();
    all.test.clock.step(-3 * HOUR_MS);
    const payload = { admin_graphql_api_id: contract };
    expect(await ask("subscription_contracts/update", payload, beganAt - HOUR_MS)).toContain("BillingCycles");
  });
});

test("the orders of a renewal need no query after the reading of its contract", async () => {
  const { all, contract } = await withMirroredContract();
  all.test.clock.ms += HOUR_MS;
  const from = all.platform.requests.length;
  all.remote.succeedAttempt(all.remote.startAttempt(contract, 1));
  const topics = new Set(all.remote.outgoing.map(({ topic }) => topic));
  expect(topics).toContain("orders/create");
  await all.deliverAll();
  expect(all.operations(from).filter((name) => name === "BillingCycles")).toHaveLength(1);
  // A webhook about the attempt names the order, so the contract and the order are read in one query.
  expect(all.operations(from).filter((name) => name === "Nodes")).toHaveLength(1);
  expect(await all.shop.all("orders")).toHaveLength(2);
});

test("the platform sends every change of an order, although it drops webhooks that do not differ", async () => {
  const { all, contract } = await withMirroredContract();
  all.test.clock.ms += HOUR_MS;
  const order = all.remote.succeedAttempt(all.remote.startAttempt(contract, 1));
  await all.deliverAll();
  for (const [price, totalCents] of [
    ["3.00", 300],
    ["4.00", 400],
  ] as const) {
    all.test.clock.ms += HOUR_MS;
    all.remote.updateOrder(order, { lines: [{ title: "Tea", price }] });
    await all.deliverAll();
    const renewed = (await all.shop.all("orders")).find(({ shopifyId }) => shopifyId === order);
    expect(renewed).toMatchObject({ totalCents });
  }
});

test("an order that a reading found needs no query; a charged order that the reading left out needs one", async () => {
  const { all, contract } = await withContract();
  all.remote.skipCycle(contract, 1);
  await all.deliverAll();
  all.test.clock.ms += HOUR_MS;
  const order = all.remote.succeedAttempt(all.remote.startAttempt(contract, 2));
  const late = all.remote.outgoing.splice(0).filter(({ topic }) => topic === "orders/create");
  // For this webhook, sds reads the contract again. The reading also finds the order, which the webhook does not name.
  await send(all, "subscription_contracts/update", { admin_graphql_api_id: contract });
  const from = all.platform.requests.length;
  for (const webhook of late) await all.send(webhook);
  await all.processed();
  expect([late.length, all.operations(from)]).toEqual([1, []]);

  all.test.clock.ms += HOUR_MS;
  all.remote.updateOrder(order, { lines: [{ title: "Tea", price: "3.00" }] });
  const updates = all.remote.outgoing.splice(0);
  all.test.clock.ms += HOUR_MS;
  await send(all, "subscription_contracts/update", { admin_graphql_api_id: contract });
  for (const webhook of updates) await all.send(webhook);
  await all.processed();
  const totals = (await all.shop.all("orders")).map(({ shopifyId, totalCents }) => [shopifyId, totalCents]);
  expect(totals).toContainEqual([order, 300]);
});

test("webhooks that need the platform are dropped if the shop is not connected", async () => {
  const all = await connected();
  await disconnect(all);
  all.createContract();
  await send(all, "customers/merge", { admin_graphql_api_customer_kept_id: "gid://shopify/Customer/1" });
  all.remote.outgoing.splice(0, 1);
  await all.deliverAll();
  expect(all.logged("because the shop is not connected").length).toBeGreaterThan(2);
  expect(await all.inbox()).toEqual([]);
  expect(await all.shop.all("subscriptions")).toEqual([]);
});

describe("the plan", () => {
  const plan = async ({ test }: ConnectedShop) => (await test.app.store.shops.find(DOMAIN))?.plan;
  const subscription = (name: string, status: string) => ({ app_subscription: { name, status } });

  test("follows all app subscriptions of the shop, not only the webhook's", async () => {
    const all = await connected();
    all.remote.setAppSubscription({ name: "Free", status: "ACTIVE" });
    all.remote.setAppSubscription({ name: "API and webhooks", status: "ACTIVE" });
    await all.deliverAll();
    expect(await plan(all)).toBe("free+addon");
    all.remote.setAppSubscription({ name: "API and webhooks", status: "CANCELLED" });
    await all.deliverAll();
    expect(await plan(all)).toBe("free");
    expect(all.logged("the shop's plan changed")).toHaveLength(2);
  });

  test("follows the webhook if the shop is not connected", async () => {
    const all = await connected();
    await disconnect(all);
    await send(all, "app_subscriptions/update", subscription("Free", "ACTIVE"));
    expect(await plan(all)).toBe("free");
    // The end of an app subscription ends only the plan of the same name.
    await send(all, "app_subscriptions/update", subscription("Pro", "ACTIVE"));
    await send(all, "app_subscriptions/update", subscription("Free", "CANCELLED"));
    expect(await plan(all)).toBe("pro");
    await send(all, "app_subscriptions/update", subscription("Pro", "CANCELLED"));
    expect(await plan(all)).toBe("free");
  });

  test("stays as it is while the shop has not paid its bill", async () => {
    const all = await connected();
    all.remote.setAppSubscription({ name: "Free", status: "EXPIRED" });
    all.remote.setAppSubscription({ name: "Pro", status: "FROZEN" });
    await all.deliverAll();
    expect(await plan(all)).toBe("pro");
  });

  test("stays as it is if sds does not know the name, with a log line", async () => {
    const all = await connected();
    all.remote.setAppSubscription({ name: `Enterprise ${"x".repeat(200)}`, status: "ACTIVE" });
    await all.deliverAll();
    expect(await plan(all)).toBe("pro");
    const [line] = all.logged("a plan that sds does not know");
    expect(line).toMatchObject({ level: "warn", plan: `enterprise-${"x".repeat(89)}` });
    all.remote.setAppSubscription({ name: "Unknown too", status: "PENDING" });
    await all.deliverAll();
    expect(all.logged("a plan that sds does not know")).toHaveLength(1);
  });

  test("is not guessed while the platform is down", async () => {
    const all = await connected();
    all.platform.fault = () => ({ status: 503 });
    all.remote.setAppSubscription({ name: "Free", status: "ACTIVE" });
    await all.deliverAll();
    expect(await plan(all)).toBe("pro");
    expect(await all.inbox()).toMatchObject([{ subject: "installation", status: "waiting", attempts: 1 }]);
    all.platform.fault = () => undefined;
    await all.processedAfter(HOUR_MS);
    expect(await plan(all)).toBe("free");
  });
});

describe("a change of the granted scopes", () => {
  const all = ["read_own_subscription_contracts", "read_customers", "read_orders"];

  test("is stored and logged", async () => {
    const shop = await connected();
    shop.remote.setScopes([...all, "read_all_orders"]);
    await shop.deliverAll();
    expect((await shop.test.app.store.connections.find(shop.shop.shop.id))?.scopes).toEqual([
      ...all,
      "read_all_orders",
    ]);
    const [line] = shop.logged("the scopes that the shop grants changed");
    expect(line).toMatchObject({ added: "read_all_orders", removed: "read_products" });
    shop.remote.setScopes([...all, "read_all_orders"]);
    await shop.deliverAll();
    expect(shop.logged("the scopes that the shop grants changed")).toHaveLength(1);
  });

  test("that revokes a needed scope is logged as an error, and shown in the shop's status", async () => {
    const shop = await connected();
    shop.remote.setScopes(["read_customers"]);
    await shop.deliverAll();
    expect(shop.logged("took back scopes that sds needs")).toHaveLength(1);
    const status = await shopStatus(shop.test.app.store, shop.shop.shop, Date.now());
    expect(connectionText(status)).toBe("the shop does not grant read_own_subscription_contracts, read_orders");
  });
});

describe("a removal of the shop", () => {
  test("is carried out and logged", async () => {
    const all = await connected();
    // The webhook about the uninstall is lost.
    all.remote.uninstall();
    await send(all, "shop/redact", { shop_domain: DOMAIN });
    expect(await all.test.app.store.shops.list()).toEqual([]);
    expect(all.logged("the shop is being removed, because the platform asked for it")).toHaveLength(1);
    await eventually(async () => (await all.test.app.store.shops.removing()).length === 0);
    await eventually(() => all.logged("a shop was removed with everything that was stored about it").length === 1);
  });

  test("is not carried out if the shop has the app installed again, with a log line", async () => {
    const all = await connected();
    for (let n = 0; n < 2; n += 1) {
      await send(all, "shop/redact", { shop_domain: DOMAIN });
      expect(await all.test.app.store.shops.list()).toHaveLength(1);
      expect(all.logged("has the app installed again; the shop stays")).toHaveLength(n + 1);
      expect(await all.inbox()).toEqual([]);
    }
  });

  test.each([503, 402, 423, 430, 301])(
    "waits while the platform answers HTTP %d, however long, and is then carried out",
    async (status) => {
      const all = await connected();
      all.platform.fault = () => ({ status });
      await send(all, "shop/redact", { shop_domain: DOMAIN });
      for (let n = 1; n <= 15; n += 1) {
        expect(await all.inbox()).toMatchObject([{ subject: "removal", status: "waiting", attempts: n }]);
        await all.processedAfter(8 * HOUR_MS);
      }
      expect(await all.test.app.store.shops.list()).toHaveLength(1);
      all.remote.uninstall();
      all.platform.fault = () => undefined;
      all.test.clock.ms += 8 * HOUR_MS;
      all.test.app.processor.wake();
      await eventually(async () => (await all.test.app.store.shops.list()).length === 0);
    },
  );

  test("of a shop that is not connected is carried out while the platform of another shop does not answer", async () => {
    const all = await connected();
    const beta = "beta.myshopify.com";
    await all.test.addShop(beta);
    for (let n = 0; n < 20; n += 1) all.createContract();
    const { promise: until, resolve: answer } = Promise.withResolvers<void>();
    all.platform.fault = () => ({ until });
    for (const webhook of all.remote.outgoing.splice(0)) await all.send(webhook);
    await post(all, "shop/redact", { shop_domain: beta }, { shop: beta });
    await eventually(async () => (await all.test.app.store.shops.list()).length === 1);
    answer();
    await all.processed();
  });

  test("is not carried out if the platform accepts the token and only refuses the query", async () => {
    const all = await connected();
    const denied = { message: "Access denied", extensions: { code: "ACCESS_DENIED" } };
    all.platform.fault = () => ({ status: 200, body: JSON.stringify({ data: null, errors: [denied] }) });
    await send(all, "shop/redact", { shop_domain: DOMAIN });
    expect(await all.test.app.store.shops.list()).toHaveLength(1);
    expect(await all.inbox()).toEqual([]);
  });

  test("is carried out if the platform no longer knows the shop", async () => {
    const all = await connected();
    all.platform.fault = () => ({ status: 404 });
    await send(all, "shop/redact", { shop_domain: DOMAIN });
    expect(await all.test.app.store.shops.list()).toEqual([]);
  });

  test("is refused and logged if it names another shop", async () => {
    const all = await connected();
    await send(all, "shop/redact", { shop_domain: "beta.myshopify.com" });
    expect(await all.test.app.store.shops.list()).toHaveLength(1);
    expect(all.logged("names one shop in its body and another in its header")).toHaveLength(1);
    expect(await all.inbox()).toEqual([]);
  });
});

test("records and requests with the same subject are handled together", async () => {
  const all = await connected();
  const customer = all.remote.createCustomer({ email: "ada@example.com" });
  all.remote.requestData(customer);
  all.remote.requestData(customer);
  await Promise.all(all.remote.outgoing.splice(0).map(all.send));
  await all.processed();
  expect(await all.shop.all("customers")).toMatchObject([{ email: "ada@example.com" }]);
  expect(all.logged("a customer's data was requested")).toHaveLength(2);
  expect(all.test.logged.join("")).toContain("then run `sds customer answered`");
  expect(await all.inbox()).toEqual([]);
  const requestedAt = all.test.clock.ms;
  const open = { customer, requestedAt, dueAt: requestedAt + 30 * 24 * HOUR_MS };
  expect((await shopStatus(all.test.app.store, all.shop.shop, Date.now())).dataRequests).toMatchObject([
    { ...open },
    { ...open },
  ]);
});

test("a request for data that comes with a time in the far future is due 30 days after it arrived", async () => {
  const all = await connected();
  all.remote.requestData(all.remote.createCustomer({ email: "ada@example.com" }));
  const webhooks = all.remote.outgoing.splice(0);
  await Promise.all(webhooks.map((webhook) => all.send({ ...webhook, triggeredAt: "+275760-09-13T00:00:00Z" })));
  await all.processed();
  const dueAt = all.test.clock.ms + 30 * 24 * HOUR_MS;
  expect((await shopStatus(all.test.app.store, all.shop.shop, Date.now())).dataRequests).toMatchObject([{ dueAt }]);
});
