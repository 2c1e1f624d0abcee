import { describe, expect, test } from "bun:test";
import { customerId, orderId, subscriptionId } from "../../src/domain/ids.ts";
import { START } from "../support/app.ts";
import { billingCycle, cancelFlow, customer, gid, line, order, reward, subscription } from "../support/records.ts";
import { engines, storeWithShop } from "./engines.ts";
import { allRows, commit } from "./fixtures.ts";

const DOMAIN = "alpha.myshopify.com";
const at = (text: string) => Date.parse(`${text}T00:00:00.000Z`);

describe.each(engines())("$name: a mirrored row", (engine) => {
  test("of a customer has the served JSON, and the times of the platform's data", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    await commit(store, shop, [
      customer(1, { email: "ada@example.com", marketingConsent: true, asOf: START - 2, consentAsOf: START - 1 }),
      customer(2),
    ]);
    const json = {
      id: customerId(DOMAIN, gid.customer(1)),
      shopifyId: gid.customer(1),
      email: "ada@example.com",
      firstName: null,
      lastName: null,
    };
    const rest = { creditsCents: 0, loyaltyTier: 0, subscriptionCount: 0, createdAt: "2026-03-01T12:00:00.000Z" };
    const stored = await rows("customers");
    expect(stored.find(({ id }) => id === json.id)).toEqual({
      shop_id: shop.id,
      created_at: START,
      id: json.id,
      json: JSON.stringify({ ...json, marketingConsent: true, ...rest }),
      profile_as_of: START - 2,
      consent_as_of: START - 1,
      redacted_at: null,
      redacted_after: null,
      change_number: 1,
    });
    expect(stored.find(({ id }) => id !== json.id)).toMatchObject({
      profile_as_of: null,
      consent_as_of: null,
      change_number: 2,
    });
  });

  test("of a subscription has its revision, churn type, renewals and last order beside its JSON", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    const given = {
      revision: "123456789012345678901234567890",
      churnType: "voluntary",
      cyclesCompleted: 7,
      status: "CANCELLED",
    } as const;
    await commit(store, shop, [
      subscription(1, given),
      order(1, 1),
      order(1, 2, { status: "FAILED", billedAt: "2026-02-03T00:00:00.000Z" }),
      subscription(2),
    ]);
    const id = subscriptionId(DOMAIN, gid.contract(1));
    const stored = await rows("subscriptions");
    expect(stored.find((row) => row["id"] === id)).toEqual({
      shop_id: shop.id,
      started_at: at("2026-01-01"),
      id,
      json: JSON.stringify({
        id,
        shopifyId: gid.contract(1),
        customerId: customerId(DOMAIN, gid.customer(1)),
        status: "CANCELLED",
        interval: "MONTH",
        intervalCount: 1,
        sellingPlanId: "gid://shopify/SellingPlan/3",
        lines: [line],
        nextBillingDate: null,
        cyclesCompleted: 7,
        startedAt: "2026-01-01T00:00:00.000Z",
        cancelledAt: null,
      }),
      revision: given.revision,
      churn_type: "voluntary",
      cycles_given: true,
      renewals: 1,
      last_order_at: at("2026-02-03"),
      last_order_status: "FAILED",
      change_number: 1,
    });
    const nothing = {
      revision: null,
      churn_type: null,
      cycles_given: false,
      renewals: 0,
      last_order_at: null,
      last_order_status: null,
    };
    expect(stored.find((row) => row["id"] !== id)).toMatchObject(nothing);
  });

  test("of an order has its attempts beside its JSON", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    const declined = {
      status: "FAILED",
      attemptCount: 2,
      reason: "card_declined",
      nextRetryAt: "2026-03-05T00:00:00.000Z",
      retriesExhausted: false,
    } as const;
    await commit(store, shop, [subscription(1), order(1, 1, declined), order(1, 2)]);
    await commit(store, shop, [billingCycle(1, 3, ["card_declined@1", "charged@2"])]);
    await commit(store, shop, [order(1, 4, { status: "UNCOLLECTIBLE", retriesExhausted: true })]);
    const stored = await rows("orders");
    const rowOf = (cycle: number) =>
      stored.find(({ id }) => id === orderId(DOMAIN, gid.contract(1), "recurring", cycle));
    expect(rowOf(1)).toEqual({
      shop_id: shop.id,
      billed_at: at("2026-02-01"),
      id: orderId(DOMAIN, gid.contract(1), "recurring", 1),
      json: JSON.stringify({
        id: orderId(DOMAIN, gid.contract(1), "recurring", 1),
        shopifyId: gid.order(1001),
        contractId: subscriptionId(DOMAIN, gid.contract(1)),
        customerId: customerId(DOMAIN, gid.customer(1)),
        source: "recurring",
        cycleNumber: 1,
        status: "FAILED",
        lines: [line],
        subtotalCents: 2500,
        discountCents: 500,
        creditsCents: 100,
        totalCents: 1900,
        billedAt: "2026-02-01T00:00:00.000Z",
      }),
      attempt_count: 2,
      reason: "card_declined",
      next_retry_at: at("2026-03-05"),
      retries_exhausted: false,
      declined: true,
      charged: false,
      platform_attempts: 0,
      change_number: 3,
    });
    expect(rowOf(2)).toMatchObject({
      reason: null,
      next_retry_at: null,
      retries_exhausted: null,
      declined: false,
      charged: true,
      platform_attempts: 0,
    });
    expect(rowOf(3)).toMatchObject({ attempt_count: 2, declined: true, charged: true, platform_attempts: 2 });
    expect(rowOf(4)).toMatchObject({ retries_exhausted: true });
  });

  test("of a reward or a cancellation flow is the record, stored once for each id and type", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    await commit(store, shop, [subscription(1), reward("same", { gift: { names: ["A", null] } }), cancelFlow("same")]);
    expect(
      await commit(store, shop, [reward("same", { milestone: 9 }), cancelFlow("same", { saved: true })]),
    ).toMatchObject({ changed: 0 });
    expect((await rows("occurrences")).map(({ type, id, json }) => [type, id, json])).toEqual([
      ["cancel_flow", "same", JSON.stringify(cancelFlow("same"))],
      ["reward", "same", JSON.stringify(reward("same", { gift: { names: ["A", null] } }))],
    ]);
  });

  test("is read back unchanged: a repeated record changes nothing, and a new record keeps absent fields", async () => {
    const { store, shop } = await storeWithShop(engine);
    const records = [
      customer(1, { email: "ada@example.com", marketingConsent: true, asOf: START, consentAsOf: START }),
      subscription(1, { revision: "20", status: "CANCELLED", churnType: "involuntary" }),
      order(1, 1, {
        status: "FAILED",
        attemptCount: 2,
        reason: "card_declined",
        nextRetryAt: "2026-03-05T00:00:00.000Z",
        retriesExhausted: false,
      }),
      order(1, 2),
      order(1, 3, { status: "UNCOLLECTIBLE", retriesExhausted: true }),
    ];
    await commit(store, shop, records);
    const again = await commit(store, shop, [
      ...records,
      // All of these records are older than the stored data.
      customer(1, { email: null, marketingConsent: false, asOf: START - 1, consentAsOf: START - 1 }),
      subscription(1, { revision: "9", status: "ACTIVE" }),
    ]);
    expect(again).toEqual({ accepted: 7, changed: 0, events: 0 });
    await commit(store, shop, [order(1, 1, { status: "RECOVERED" }), subscription(1, { status: "ACTIVE" })]);
    expect((await allRows(store, shop, "subscriptions"))[0]).toMatchObject({ status: "ACTIVE", cyclesCompleted: 2 });
    // A count in a record replaces the mirror's own count.
    await commit(store, shop, [subscription(1, { cyclesCompleted: 7 })]);
    await commit(store, shop, [order(1, 4)]);
    expect((await allRows(store, shop, "subscriptions"))[0]).toMatchObject({ cyclesCompleted: 7 });
  });

  test("keeps its position in the pages, even if a later record has another sort date", async () => {
    const { store, rows, shop } = await storeWithShop(engine);
    await commit(store, shop, [subscription(1), order(1, 1)]);
    const other = "2020-01-01T00:00:00.000Z";
    await commit(
      store,
      shop,
      [subscription(1, { startedAt: other, status: "PAUSED" }), order(1, 1, { billedAt: other, status: "FAILED" })],
      START + 1_000,
    );
    expect(await rows("subscriptions")).toMatchObject([{ started_at: at("2026-01-01") }]);
    expect(await rows("orders")).toMatchObject([{ billed_at: at("2026-02-01") }]);
    expect(await rows("customers")).toMatchObject([{ created_at: START }]);
  });
});
