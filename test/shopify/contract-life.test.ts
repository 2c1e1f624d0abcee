import { expect, test } from "bun:test";
import { changeWebhook } from "../../src/shopify/inbox/payload.ts";
import { connected, createContract, DOMAIN, HOUR_MS, withContract } from "../support/connected.ts";

test("webhooks bring the whole life of a contract, and each event is queued once", async () => {
  const all = await connected();
  const { remote, shop, deliverAll } = all;
  const order = (fields: object) => expect.objectContaining(fields);
  const contract = createContract(remote);
  await all.queueAllEvents();
  await deliverAll();
  expect(await all.queuedTopics()).toEqual(["subscription.created", "order.charged"]);

  remote.failAttempt(remote.startAttempt(contract, 1), "INSUFFICIENT_FUNDS");
  await deliverAll();
  expect((await all.queuedTopics()).slice(2)).toEqual(["order.failed"]);
  const declined = { cycleNumber: 1, status: "FAILED", shopifyId: null, totalCents: 2500 };
  expect(await shop.all("orders")).toContainEqual(order(declined));

  remote.succeedAttempt(remote.startAttempt(contract, 1));
  await deliverAll();
  expect((await all.queuedTopics()).slice(3).toSorted()).toEqual(["order.recovered", "subscription.updated"]);

  remote.skipCycle(contract, 2);
  await deliverAll();
  expect(await shop.all("orders")).toContainEqual(order({ cycleNumber: 2, status: "SKIPPED" }));
  remote.unskipCycle(contract, 2);
  await deliverAll();
  expect(await shop.all("orders")).toContainEqual(order({ cycleNumber: 2, status: "PENDING" }));

  remote.cancel(contract);
  await deliverAll();
  expect((await all.queuedTopics()).slice(-2)).toEqual(["subscription.updated", "subscription.cancelled"]);
  const cancelled = { status: "CANCELLED", nextBillingDate: null, cyclesCompleted: 1 };
  expect(await shop.all("subscriptions")).toMatchObject([cancelled]);
});

test("a cancellation that comes together with the last decline is involuntary", async () => {
  const { all, contract } = await withContract();
  await all.queueAllEvents();
  await all.deliverAll();
  all.remote.failAttempt(all.remote.startAttempt(contract, 1));
  all.remote.cancel(contract);
  await all.deliverAll();
  expect((await all.queuedTopics()).slice(2)).toEqual([
    "order.failed",
    "subscription.updated",
    "subscription.cancelled",
  ]);
  const deliveries = await all.test.app.store.deliveries.list(all.shop.shop.id, { limit: 1 });
  const { body } = await all.test.app.store.deliveries.show(all.shop.shop.id, deliveries[0]?.id ?? "");
  expect(JSON.parse(body).data).toMatchObject({ churn_type: "involuntary" });
});

test("a declined renewal is uncollectible once its contract has ended, and failed again if the contract goes on", async () => {
  const { all, contract } = await withContract();
  all.remote.failAttempt(all.remote.startAttempt(contract, 1));
  await all.deliverAll();
  const statusAfter = async (change: (id: string) => unknown) => {
    change(contract);
    await all.deliverAll();
    return (await all.shop.all("orders")).find(({ cycleNumber }) => cycleNumber === 1)?.["status"];
  };
  expect(await statusAfter((id) => all.remote.fail(id))).toBe("UNCOLLECTIBLE");
  expect(await statusAfter((id) => all.remote.activate(id))).toBe("FAILED");
  expect(await statusAfter((id) => all.remote.cancel(id))).toBe("UNCOLLECTIBLE");
});

test("a contract whose customer the platform deleted keeps the customer that the mirror knows", async () => {
  const all = await connected();
  const customer = all.remote.createCustomer({ email: "a@example.com" });
  const contract = all.createContract({ customer });
  await all.deliverAll();
  all.remote.deleteCustomer(customer);
  all.remote.pause(contract);
  await all.deliverAll();
  const [person] = await all.shop.all("customers");
  expect(person).toMatchObject({ shopifyId: customer, email: null });
  expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "PAUSED", customerId: person?.["id"] }]);
});

test("a contract without any known customer waits in the inbox", async () => {
  const all = await connected();
  const customer = all.remote.createCustomer();
  all.createContract({ customer });
  all.remote.deleteCustomer(customer);
  await all.deliverAll();
  expect(await all.shop.all("subscriptions")).toEqual([]);
  const waiting = await all.inbox();
  expect(waiting.map(({ error }) => error).join()).toContain("the platform names no customer for gid://");
});

test("a contract that the platform does not have changes nothing", async () => {
  const all = await connected();
  const { topic, body } = changeWebhook("contract", "gid://shopify/SubscriptionContract/1");
  const id = crypto.randomUUID();
  const triggeredAt = new Date(all.test.clock.ms).toISOString();
  await all.send({ shop: DOMAIN, topic, body, id, eventId: id, triggeredAt });
  await all.processed();
  expect(all.operations().slice(-2)).toEqual(["Installation", "Nodes"]);
  expect(await all.inbox()).toEqual([]);
});

test("a contract that the platform has, but refuses to show, waits in the inbox", async () => {
  const { all } = await withContract();
  all.replaceAnswers("Nodes", { status: 400 });
  await all.deliverAll();
  const waiting = await all.inbox();
  expect(waiting.map(({ error }) => error)).toContain("the platform answered HTTP 400");
});

test("a skipped cycle is read again for 30 days and the days of the retry plan, and not after that", async () => {
  const { all, contract } = await withContract({ interval: "WEEK" });
  all.remote.skipCycle(contract, 1);
  await all.deliverAll();
  const statusOf = async (cycle: number) =>
    (await all.shop.all("orders")).find(({ cycleNumber }) => cycleNumber === cycle)?.["status"];
  expect(await statusOf(1)).toBe("SKIPPED");
  all.test.clock.ms += 45 * 24 * HOUR_MS;
  all.remote.unskipCycle(contract, 1);
  await all.deliverAll();
  expect(await statusOf(1)).toBe("PENDING");
  all.remote.skipCycle(contract, 1);
  await all.deliverAll();
  all.test.clock.ms += 2 * 24 * HOUR_MS;
  all.remote.unskipCycle(contract, 1);
  await all.deliverAll();
  expect(await statusOf(1)).toBe("SKIPPED");
});

test.each([
  ["DAY", 1, 35],
  ["WEEK", 2, 10],
  ["MONTH", 1, 10],
  ["YEAR", 1, 10],
] as const)(
  "a skip of the cycle after the next billing is seen with an interval of %s x %d, and no later cycle is read",
  async (...args) => {
    const [interval, intervalCount, billed] = args;
    const { all, contract } = await withContract({ interval, intervalCount });
    for (let cycle = 1; cycle <= billed; cycle += 1)
      all.remote.succeedAttempt(all.remote.startAttempt(contract, cycle));
    const skipped = billed + 2;
    all.remote.skipCycle(contract, skipped);
    all.remote.skipCycle(contract, skipped + 1);
    all.remote.outgoing.splice(0, all.remote.outgoing.length - 1);
    const begun = all.platform.requests.length;
    await all.deliverAll();
    const orders = await all.shop.all("orders");
    expect(orders.filter(({ status }) => status === "PAID")).toHaveLength(billed + 1);
    expect(orders).toContainEqual(expect.objectContaining({ cycleNumber: skipped, status: "SKIPPED" }));
    expect(orders.some(({ cycleNumber }) => Number(cycleNumber) > skipped)).toBe(false);
    // The first query reads three cycles, and each later query reads twelve.
    const pages = all.operations(begun).filter((name) => name === "BillingCycles");
    expect(pages).toHaveLength(1 + Math.ceil((skipped - 3) / 12));
  },
);
