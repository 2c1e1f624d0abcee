import { expect, test } from "bun:test";
import { PlatformShop } from "../../../src/cli/demo/platform-shop.ts";
import { CYCLE_MS } from "../../../src/cli/demo/sample-records.ts";
import { isoUtc } from "../../../src/lib/time.ts";
import { START } from "../../support/app.ts";
import { customer, order, subscription } from "../../support/records.ts";

const HOUR_MS = 3_600_000;
const CONTRACT = subscription(1).shopifyId;

/** The demo's platform with one contract. Its orders are billed at START. */
function withContract() {
  const shop = new PlatformShop();
  shop.apply(customer(1, { firstName: "Ada", marketingConsent: false }), START);
  shop.apply(subscription(1, { startedAt: isoUtc(START) }), START);
  const bill = (cycle: number, fields: Parameters<typeof order>[2], at = START) =>
    shop.apply(order(1, cycle, { billedAt: isoUtc(START), ...fields }), at);
  return { shop, bill };
}

test("a change of the demo's contract has a webhook, a higher revision, and a later time", () => {
  const shop = new PlatformShop();
  const payload = { admin_graphql_api_id: CONTRACT };
  expect(shop.apply(subscription(1), START)).toEqual({
    topic: "subscription_contracts/create",
    payload: { ...payload, revision_id: "1" },
  });
  expect(shop.apply(subscription(1, { status: "PAUSED" }), START + 1_000)).toEqual({
    topic: "subscription_contracts/update",
    payload: { ...payload, revision_id: "2" },
  });
  expect(shop.contractNodes()).toMatchObject([
    { status: "PAUSED", revisionId: "2", updatedAt: isoUtc(START + 1_000), customer: null, originOrder: null },
  ]);
});

test("a contract of the demo shows its customer and its checkout", () => {
  const { shop, bill } = withContract();
  expect(bill(0, {})).toBeUndefined();
  expect(shop.contractNodes()).toMatchObject([
    {
      customer: { firstName: "Ada", defaultEmailAddress: { marketingState: "NOT_SUBSCRIBED" } },
      originOrder: { id: order(1, 0).shopifyId },
      billingAttempts: { nodes: [] },
    },
  ]);
  expect(shop.orderNodes()).toMatchObject([{ id: order(1, 0).shopifyId, processedAt: isoUtc(START) }]);
});

test("a charge of the demo that succeeds after a decline has two attempts, and its order belongs to the second", () => {
  const { shop, bill } = withContract();
  expect(bill(1, { shopifyId: null, status: "FAILED", reason: "expired_payment_method" })).toMatchObject({
    topic: "subscription_billing_attempts/failure",
    payload: { admin_graphql_api_id: shop.attemptNodes()[0]?.id, admin_graphql_api_order_id: null },
  });
  expect(shop.orderNodes()).toEqual([]);
  expect(bill(1, { status: "RECOVERED" }, START + HOUR_MS)).toMatchObject({
    topic: "subscription_billing_attempts/success",
    payload: { admin_graphql_api_id: shop.attemptNodes()[1]?.id, admin_graphql_api_order_id: order(1, 1).shopifyId },
  });
  expect(shop.attemptNodes()).toMatchObject([
    {
      completedAt: isoUtc(START),
      state: {
        __typename: "SubscriptionBillingAttemptFailedState",
        error: { payment: "EXPIRED_PAYMENT_METHOD" },
      },
    },
    {
      completedAt: isoUtc(START + HOUR_MS),
      state: { __typename: "SubscriptionBillingAttemptSuccessState", order: { id: order(1, 1).shopifyId } },
    },
  ]);
  expect(shop.orderNodes()).toMatchObject([{ processedAt: isoUtc(START + HOUR_MS) }]);
});

test("a charge of the demo that is under way has no result and no webhook", () => {
  const { shop, bill } = withContract();
  bill(1, { shopifyId: null, status: "FAILED" });
  const pending = { shopifyId: null, status: "PENDING", attemptCount: 2 } as const;
  expect(bill(1, pending, START + HOUR_MS)).toBeUndefined();
  expect(shop.attemptNodes()).toMatchObject([
    { completedAt: isoUtc(START), state: { __typename: "SubscriptionBillingAttemptFailedState" } },
    { completedAt: null, state: { __typename: "SubscriptionBillingAttemptPendingState" } },
  ]);
});

test("a contract of the demo has failed only after its last charge was given up", () => {
  const { shop, bill } = withContract();
  shop.apply(subscription(1, { status: "PAYMENT_FAILED" }), START);
  bill(1, { shopifyId: null, status: "FAILED" });
  expect(shop.contractNodes()).toMatchObject([{ status: "ACTIVE" }]);
  bill(1, { shopifyId: null, status: "UNCOLLECTIBLE" });
  expect(shop.contractNodes()).toMatchObject([{ status: "FAILED" }]);
});

test("the demo's cycles follow each other from the contract's start", () => {
  const { shop, bill } = withContract();
  bill(1, {});
  bill(2, { shopifyId: null, status: "SKIPPED" });
  expect(shop.cycleRange(CONTRACT, START - CYCLE_MS, START + 3 * CYCLE_MS)).toEqual([1, 3]);
  expect(shop.cycleRange(CONTRACT, START + CYCLE_MS + 1, START + 2 * CYCLE_MS + 1)).toEqual([2, 2]);
  expect(shop.cycleNodes(CONTRACT, 1, 3)).toMatchObject([
    { cycleIndex: 1, status: "BILLED", skipped: false, billingAttempts: { nodes: [{}] } },
    { cycleIndex: 2, status: "UNBILLED", skipped: true, billingAttempts: { nodes: [] } },
    {
      cycleIndex: 3,
      status: "UNBILLED",
      skipped: false,
      cycleStartAt: isoUtc(START + 2 * CYCLE_MS),
      billingAttemptExpectedDate: isoUtc(START + 3 * CYCLE_MS),
    },
  ]);
  expect(shop.cycleNodes("gid://shopify/SubscriptionContract/9", 1, 3)).toEqual([]);
});
