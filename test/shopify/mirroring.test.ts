import { describe, expect, test } from "bun:test";
import { type ConnectionResult, connected, DOMAIN } from "../support/connected.ts";

const LINE = { title: "House blend", price: "12.50", quantity: 2, variant: "gid://shopify/ProductVariant/11", product: "gid://shopify/Product/12" };

async function withContract() {
  const all = await connected();
  const customer = all.remote.createCustomer({ email: "ada@example.com", firstName: "Ada", lastName: "Lovelace", marketing: "subscribed" });
  const contract = all.remote.createContract({ customer, lines: [LINE] });
  return { ...all, customer, contract };
}

function sync({ test, shop }: ConnectionResult, options = { events: false }) {
  return test.app.platform.synchronizer.load(shop.shop, options);
}

async function topics({ test, shop }: ConnectionResult): Promise<string[]> {
  return (await test.app.store.deliveries.list(shop.shop.id, { limit: 100 })).map(({ topic }) => topic).reverse();
}

async function sendEverything({ test }: ConnectionResult): Promise<void> {
  const { id } = (await test.app.store.shops.find(DOMAIN)) ?? { id: 0 };
  const { TOPIC_NAMES } = await import("../../src/domain/event.ts");
  await test.app.store.webhooks.set(id, { url: "https://hooks.example.com/", topics: TOPIC_NAMES }, test.clock.now());
}

describe("a first sync", () => {
  test("loads customers, contracts and orders, and queues nothing", async () => {
    const all = await withContract();
    await sendEverything(all);
    const attempt = all.remote.startAttempt(all.contract, 1);
    all.remote.failAttempt(attempt, "CARD_DECLINED");
    const second = all.remote.startAttempt(all.contract, 1);
    const paid = all.remote.succeedAttempt(second, {
      discounts: [
        { title: "Loyalty credit", amount: "3.00" },
        { title: "WELCOME", amount: "2.00", kind: "code" },
      ],
    });
    all.test.clock.ms += 60_000;
    const counts = await sync(all);
    expect(counts).toMatchObject({ customers: 1, subscriptions: 1, orders: 2, events: 0 });
    expect(await all.shop.all("customers")).toMatchObject([
      { shopifyId: all.customer, email: "ada@example.com", firstName: "Ada", lastName: "Lovelace", marketingConsent: true, subscriptionCount: 1 },
    ]);
    expect(await all.shop.all("subscriptions")).toMatchObject([
      {
        shopifyId: all.contract,
        status: "ACTIVE",
        interval: "MONTH",
        intervalCount: 1,
        cyclesCompleted: 1,
        lines: [{ title: "House blend", quantity: 2, unitPriceCents: 1250 }],
      },
    ]);
    const orders = (await all.shop.all("orders")).toSorted((a, b) => Number(a["cycleNumber"]) - Number(b["cycleNumber"]));
    expect(orders).toMatchObject([
      { source: "checkout", cycleNumber: 0, status: "PAID", shopifyId: all.remote.originOrder(all.contract), subtotalCents: 2500, totalCents: 2500 },
      {
        source: "recurring",
        cycleNumber: 1,
        status: "RECOVERED",
        shopifyId: paid,
        subtotalCents: 2500,
        discountCents: 200,
        creditsCents: 300,
        totalCents: 2000,
      },
    ]);
    expect(await topics(all)).toEqual([]);
  });
});

describe("webhooks", () => {
  test("tell of a contract's whole life, and each event is queued once", async () => {
    const all = await withContract();
    await sendEverything(all);
    await all.deliverAll();
    expect(await topics(all)).toEqual(["subscription.created", "order.charged"]);
    const first = all.remote.startAttempt(all.contract, 1);
    all.remote.failAttempt(first, "INSUFFICIENT_FUNDS");
    await all.deliverAll();
    expect((await topics(all)).slice(2)).toEqual(["order.failed"]);
    expect(await all.shop.all("orders")).toContainEqual(expect.objectContaining({ cycleNumber: 1, status: "FAILED", shopifyId: null, totalCents: 2500 }));
    const second = all.remote.startAttempt(all.contract, 1);
    all.remote.succeedAttempt(second);
    await all.deliverAll();
    expect((await topics(all)).slice(3).toSorted()).toEqual(["order.recovered", "subscription.updated"]);
    all.remote.skipCycle(all.contract, 2);
    await all.deliverAll();
    expect(await all.shop.all("orders")).toContainEqual(expect.objectContaining({ cycleNumber: 2, status: "SKIPPED" }));
    all.remote.unskipCycle(all.contract, 2);
    await all.deliverAll();
    expect(await all.shop.all("orders")).toContainEqual(expect.objectContaining({ cycleNumber: 2, status: "PENDING" }));
    all.remote.cancel(all.contract);
    await all.deliverAll();
    expect((await topics(all)).slice(-2)).toEqual(["subscription.updated", "subscription.cancelled"]);
    expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "CANCELLED", nextBillingDate: null, cyclesCompleted: 1 }]);
  });
});
