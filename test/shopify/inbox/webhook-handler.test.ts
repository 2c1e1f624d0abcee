import { describe, expect, test } from "bun:test";
import { shopStatus } from "../../../src/actions/shop.ts";
import { connected, HOUR_MS, withContract, withMirroredContract } from "../../support/connected.ts";
import { disconnect, post, send } from "./posting.ts";

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
