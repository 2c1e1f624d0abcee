import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { nextTurn } from "../../../src/lib/waits.ts";
import { connected, DOMAIN, HOUR_MS, LINE, withContract, withMirroredContract } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import { webhook } from "./posting.ts";

const SAMPLES = join(import.meta.dir, "../../support/platform-webhooks");

test("every sample of the platform's webhooks is accepted and processed", async () => {
  const all = await connected();
  for (const file of readdirSync(SAMPLES).filter((name) => !/^(shop__redact|app__uninstalled)/.test(name))) {
    const body = await Bun.file(join(SAMPLES, file)).text();
    const response = await all.send(webhook(file.replace("__", "/").replace(".json", ""), body));
    expect([file, response.status]).toEqual([file, 200]);
  }
  await all.processed();
  // It is possible that a late replica does not show the contracts and orders of the samples yet.
  for (let minute = 0; minute < 12; minute += 1) await all.processedAfter(60_000);
  expect(await all.inbox()).toEqual([]);
});

test("ids beyond 2^53 stay exact, even if the payload has only the number", async () => {
  const all = await connected();
  const customer = all.remote.createCustomer({ email: "ada@example.com" });
  const contract = all.createContract({ customer });
  all.remote.outgoing.length = 0;
  all.remote.skipCycle(contract, 1);
  all.remote.setConsent(customer, "subscribed");
  expect(BigInt(contract.split("/").at(-1) ?? 0)).toBeGreaterThan(BigInt(Number.MAX_SAFE_INTEGER));
  await all.deliverAll();
  expect(await all.shop.all("subscriptions")).toMatchObject([{ shopifyId: contract }]);
  expect(await all.shop.all("customers")).toMatchObject([{ shopifyId: customer, marketingConsent: true }]);
});

test.each([{ updated_at: "9999-12-31T23:59:59Z" }, { updated_at: "+275760-09-13T00:00:00Z" }])(
  "a customer with %j is mirrored, and changes a minute later are too",
  async (date) => {
    const all = await connected();
    const customer = all.remote.createCustomer({ firstName: "Ada" });
    await all.deliverAll();
    const body = { admin_graphql_api_id: customer, first_name: "Countess", ...date };
    await all.send(webhook("customers/update", JSON.stringify(body)));
    await all.processed();
    expect(await all.shop.all("customers")).toMatchObject([{ firstName: "Countess" }]);
    all.test.clock.ms += 60_000;
    all.remote.updateCustomer(customer, { firstName: "Lady" });
    await all.deliverAll();
    expect(await all.shop.all("customers")).toMatchObject([{ firstName: "Lady" }]);
  },
);

test.each(["constructor", "__proto__", "hasOwnProperty", "toString"])(
  "the topic %s is not used, although every object has a property of that name",
  async (topic) => {
    const all = await connected();
    const response = await all.send(webhook(topic, '{"do":"remove_shop","domain":null}'));
    expect(response.status).toBe(200);
    await all.processed();
    expect(await all.test.app.store.shops.list()).toHaveLength(1);
  },
);

test.each([
  ["orders/create", '{"id":{"toString":1}}'],
  ["customers_email_marketing_consent/update", '{"customer_id":{"toString":1}}'],
  ["app_subscriptions/update", '{"app_subscription":{"name":"__proto__","status":"ACTIVE"}}'],
  ["shop/update", '{"currency":"constructor"}'],
])("%s with a senseless payload is accepted and leaves nothing in the inbox", async (topic, body) => {
  const all = await connected();
  expect((await all.send(webhook(topic, body))).status).toBe(200);
  await all.processed();
  expect(await all.inbox()).toEqual([]);
});

test("a date in the far future fails no records of another shop", async () => {
  const all = await connected();
  const other = await all.test.addShop("beta.myshopify.com");
  const contract = all.createContract();
  all.remote.setNextBillingDate(contract, "+275760-09-13T00:00:00Z");
  await Promise.all(all.remote.outgoing.splice(0).map(all.send));
  const statuses = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      other.intake({ type: "customer", shopifyId: `gid://shopify/Customer/${n + 1}` }),
    ),
  );
  await all.processed();
  expect(statuses.every(({ status }) => status === 202)).toBe(true);
});

describe("while the platform is down", () => {
  test("webhooks wait in the inbox, and are processed when it is back", async () => {
    const all = await connected();
    const customer = all.remote.createCustomer({ email: "ada@example.com" });
    const contract = all.createContract({ customer });
    all.platform.fault = () => ({ status: 503 });
    await all.deliverAll();
    // The webhook brings the customer; the platform must be asked for the contract.
    expect(await all.shop.all("customers")).toHaveLength(1);
    expect(await all.shop.all("subscriptions")).toEqual([]);
    const waiting = await all.inbox();
    expect(new Set(waiting.map(({ status }) => status))).toEqual(new Set(["waiting"]));
    expect(waiting.some(({ attempts, error }) => attempts > 0 && error === "the platform answered HTTP 503")).toBe(
      true,
    );
    all.platform.fault = () => undefined;
    await all.processedAfter(20_000);
    expect(await all.shop.all("subscriptions")).toMatchObject([{ shopifyId: contract }]);
    expect(await all.inbox()).toEqual([]);
  });

  test("few webhooks of a shop query the platform; webhooks that need no query are processed, the others wait", async () => {
    const all = await connected();
    const customer = all.remote.createCustomer({ email: "ada@example.com" });
    for (let n = 0; n < 12; n += 1) all.createContract({ customer });
    all.platform.fault = () => ({ status: 503 });
    await all.deliverAll();
    const before = all.platform.requests.length;
    await all.processedAfter(60_000);
    // Only one webhook is tried, with two requests.
    expect(all.platform.requests.length - before).toBeLessThanOrEqual(2);
    all.remote.updateCustomer(customer, { firstName: "Countess" });
    await all.deliverAll();
    expect(await all.shop.all("customers")).toMatchObject([{ firstName: "Countess" }]);
    all.platform.fault = () => undefined;
    for (let n = 0; n < 3; n += 1) await all.processedAfter(HOUR_MS);
    expect(await all.shop.all("subscriptions")).toHaveLength(12);
    expect(await all.inbox()).toEqual([]);
  });

  test("platform webhooks that fail for too long stay as failed, are counted, and can be processed by hand", async () => {
    const { all, contract } = await withContract();
    all.platform.fault = ({ operation }) => (operation === "token" ? undefined : { status: 400 });
    await all.deliverAll();
    for (let n = 0; n < 12; n += 1) await all.processedAfter(9 * HOUR_MS);
    const { store } = all.test.app;
    const { waiting, failed } = await store.inbox.count(all.shop.shop.id);
    expect({ waiting, some: failed > 0 }).toEqual({ waiting: 0, some: true });
    expect(all.test.logged.some((line) => line.includes("stays in the inbox as failed"))).toBe(true);
    all.platform.fault = () => undefined;
    expect(await store.inbox.retryFailed(all.shop.shop.id, all.test.clock.now())).toBe(failed);
    all.test.app.processor.wake();
    await all.processed();
    expect(await all.shop.all("subscriptions")).toMatchObject([{ shopifyId: contract }]);
    expect(await store.inbox.count(all.shop.shop.id)).toEqual({ waiting: 0, failed: 0 });
  });
});

describe("the webhooks of one renewal", () => {
  /** Makes a contract in the mirror, and the webhooks of its renewal. */
  async function renewal() {
    const all = await connected();
    const customer = all.remote.createCustomer({ email: "a@example.com" });
    const contract = all.createContract({ customer });
    await all.deliverAll();
    all.test.clock.ms += HOUR_MS;
    const from = all.platform.requests.length;
    const readings = () => all.platform.requests.slice(from).filter(({ operation }) => operation === "Nodes").length;
    const wake = async () => {
      all.test.app.processor.wake();
      await eventually(() => !all.test.app.processor.working);
    };
    return { ...all, contract, readings, wake };
  }

  test("need one reading, 3 seconds after the first, whatever their topics", async () => {
    const { test, shop, remote, contract, send, readings, wake } = await renewal();
    remote.succeedAttempt(remote.startAttempt(contract, 1));
    remote.updateContract(contract, { lines: [LINE] });
    remote.skipCycle(contract, 2);
    const webhooks = remote.outgoing.splice(0).filter(({ topic }) => topic.startsWith("subscription_"));
    expect(new Set(webhooks.map(({ topic }) => topic)).size).toBe(3);
    const due = test.clock.ms + 3_000;
    for (const webhook of webhooks) {
      await send(webhook);
      // A later webhook does not delay the processing.
      test.clock.ms += 100;
      await wake();
    }
    test.clock.ms = due - 1;
    await wake();
    expect(readings()).toBe(0);
    test.clock.ms = due;
    await wake();
    expect(readings()).toBe(1);
    expect(await test.app.store.inbox.count(shop.shop.id)).toEqual({ waiting: 0, failed: 0 });
    expect(await shop.all("orders")).toHaveLength(3);
  });

  test("are processed at once if a payment failed, together with the waiting ones", async () => {
    const { shop, remote, contract, send, readings, wake } = await renewal();
    remote.updateContract(contract, { lines: [{ ...LINE, quantity: 9 }] });
    for (const webhook of remote.outgoing.splice(0)) await send(webhook);
    await wake();
    expect(readings()).toBe(0);
    remote.failAttempt(remote.startAttempt(contract, 1));
    for (const webhook of remote.outgoing.splice(0)) await send(webhook);
    await wake();
    expect(readings()).toBe(1);
    expect(await shop.all("subscriptions")).toMatchObject([{ lines: [{ quantity: 9 }] }]);
  });

  test("are due at a time that is stored with them, and `sds inbox retry` brings it forward", async () => {
    const { test, shop, remote, contract, send, readings, wake } = await renewal();
    remote.updateContract(contract, { lines: [LINE] });
    for (const webhook of remote.outgoing.splice(0)) await send(webhook);
    const { store } = test.app;
    const [item] = await store.inbox.list(shop.shop.id, { limit: 1 });
    expect(item?.nextAttemptAt).toBe(test.clock.ms + 3_000);
    await wake();
    expect(readings()).toBe(0);
    await store.inbox.retry(shop.shop.id, item?.number ?? 0, test.clock.ms);
    await wake();
    expect(readings()).toBe(1);
  });
});

test("webhooks about one contract are processed one after another, and waiting ones share one read", async () => {
  const { all, contract } = await withMirroredContract();
  let atOnce = 0;
  let most = 0;
  const { promise: allSent, resolve: noteSent } = Promise.withResolvers<void>();
  all.platform.fault = ({ operation }) => {
    if (operation !== "Nodes") return undefined;
    atOnce += 1;
    most = Math.max(most, atOnce);
    const until = allSent.then(nextTurn).then(() => {
      atOnce -= 1;
    });
    return { until };
  };
  const before = all.platform.requests.length;
  for (let n = 0; n < 10; n += 1) all.remote.updateContract(contract, { lines: [{ ...LINE, quantity: n + 1 }] });
  await Promise.all(all.remote.outgoing.splice(0).map(all.send));
  noteSent();
  await all.processed();
  expect(most).toBe(1);
  expect(all.platform.requests.length - before).toBeLessThan(10);
  expect(await all.shop.all("subscriptions")).toMatchObject([{ lines: [{ quantity: 10 }] }]);
});

describe("the app and the shop", () => {
  test("app/uninstalled ends the connection, unless the shop was connected again in the meantime", async () => {
    const all = await connected();
    const connection = () => all.test.app.store.connections.find(all.shop.shop.id);
    await all.send({ ...webhook("app/uninstalled", "{}"), triggeredAt: "2026-02-01T00:00:00Z" });
    await all.processed();
    expect(await connection()).toBeDefined();
    all.test.clock.ms += 60_000;
    all.remote.uninstall();
    await all.deliverAll();
    expect(await connection()).toBeUndefined();
    expect(await all.test.app.store.shops.list()).toHaveLength(1);
  });

  test("app/uninstalled ends the connection, although the end of the app subscription comes with it", async () => {
    const all = await connected();
    all.test.clock.ms += 60_000;
    all.remote.setAppSubscription({ name: "Pro", status: "CANCELLED" });
    all.remote.uninstall();
    await Promise.all(all.remote.outgoing.splice(0).map(all.send));
    await all.processed();
    expect(await all.test.app.store.connections.find(all.shop.shop.id)).toBeUndefined();
    expect(await all.inbox()).toEqual([]);
    expect((await all.test.app.store.shops.find(DOMAIN))?.plan).toBe("free");
  });

  test("the plan follows the app subscription, unless the operator set a plan", async () => {
    const all = await connected();
    const plan = async () => (await all.test.app.store.shops.find(DOMAIN))?.plan;
    all.remote.setAppSubscription({ name: "Free", status: "ACTIVE" });
    await all.deliverAll();
    expect(await plan()).toBe("free");
    await all.test.app.store.shops.set(DOMAIN, { plan: "pro", planFixed: true });
    all.remote.setAppSubscription({ name: "Free", status: "CANCELLED" });
    await all.deliverAll();
    expect(await plan()).toBe("pro");
  });

  test("shop/update changes the currency", async () => {
    const all = await connected();
    all.remote.setCurrency("EUR");
    await all.deliverAll();
    expect((await all.test.app.store.shops.find(DOMAIN))?.currency).toBe("EUR");
  });
});
