import { describe, expect, test } from "bun:test";
import type { OrderMoney } from "../../../src/domain/records/platform-records.ts";
import type { AttemptNode } from "../../../src/shopify/api/operations/attempts.ts";
import type { CustomerNode } from "../../../src/shopify/api/operations/customers.ts";
import {
  billingAttempt,
  checkoutAttempt,
  customerRecord,
  subscriptionRecord,
} from "../../../src/shopify/contracts/translate.ts";
import { dateFrom } from "../../../src/shopify/contracts/values.ts";
import {
  CONTRACT,
  CUSTOMER,
  contractLine,
  contractNode,
  ORDER,
  PRODUCT,
  VARIANT,
} from "../../support/platform-nodes.ts";

describe("a date", () => {
  test.each([
    ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"],
    ["2026-01-02T03:04:05-05:00", "2026-01-02T08:04:05.000Z"],
    ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000Z"],
  ])("%s is read", (text, date) => {
    expect(dateFrom(text)).toBe(date);
  });

  test.each(["1969-12-31T23:59:59Z", "+010000-01-01T00:00:00Z", "soon", ""])("%j is refused", (text) => {
    const message = `the platform sent an invalid date: ${text}`;
    expect(() => dateFrom(text)).toThrow(expect.objectContaining({ code: "bad_record", message }));
  });
});

describe("a customer", () => {
  const node: CustomerNode = {
    id: CUSTOMER,
    firstName: "Ada",
    lastName: null,
    updatedAt: "2026-01-02T00:00:00Z",
    defaultEmailAddress: {
      emailAddress: "ada@example.com",
      marketingState: "SUBSCRIBED",
      marketingUpdatedAt: "2026-01-01T00:00:00Z",
    },
  };
  const asOf = Date.UTC(2026, 0, 2);

  test("has names, e-mail and consent, each with its time", () => {
    expect(customerRecord(node)).toEqual({
      type: "customer",
      shopifyId: CUSTOMER,
      email: "ada@example.com",
      marketingConsent: true,
      firstName: "Ada",
      lastName: null,
      asOf,
      consentAsOf: Date.UTC(2026, 0, 1),
    });
  });

  test("without e-mail has no consent", () => {
    const expected = { email: null, marketingConsent: false, asOf, consentAsOf: asOf };
    expect(customerRecord({ ...node, defaultEmailAddress: null })).toMatchObject(expected);
  });

  test.each(["UNSUBSCRIBED", "PENDING", "NOT_SUBSCRIBED"])("has not consented in the state %s", (marketingState) => {
    const address = { emailAddress: "a@example.com", marketingState, marketingUpdatedAt: null };
    const expected = { marketingConsent: false, consentAsOf: asOf };
    expect(customerRecord({ ...node, defaultEmailAddress: address })).toMatchObject(expected);
  });

  test("has no fields that the app may not see", () => {
    const record = { type: "customer" as const, shopifyId: CUSTOMER, asOf, consentAsOf: asOf };
    expect(customerRecord({ id: CUSTOMER, updatedAt: node.updatedAt })).toEqual(record);
  });

  test("is refused if it is not valid", () => {
    const refusal = {
      code: "bad_record",
      message: expect.stringContaining("the platform's customer is not valid: shopifyId"),
    };
    expect(() => customerRecord({ ...node, id: ORDER })).toThrow(expect.objectContaining(refusal));
  });
});

describe("a subscription", () => {
  test("has all fields of the contract", () => {
    expect(subscriptionRecord(contractNode(), [contractLine()], CUSTOMER)).toEqual({
      type: "subscription",
      shopifyId: CONTRACT,
      customer: CUSTOMER,
      status: "ACTIVE",
      interval: "MONTH",
      intervalCount: 1,
      sellingPlanId: null,
      lines: [{ variantId: VARIANT, productId: PRODUCT, title: "Tea", quantity: 2, unitPriceCents: 1250 }],
      nextBillingDate: "2026-02-01T00:00:00.000Z",
      startedAt: "2026-01-01T00:00:00.000Z",
      revision: "9007199254740993",
    });
  });

  test("has the first selling plan among its lines", () => {
    const plans = [null, "gid://shopify/SellingPlan/2", "gid://shopify/SellingPlan/3"];
    const lines = plans.map((sellingPlanId) => contractLine({ sellingPlanId }));
    expect(subscriptionRecord(contractNode(), lines, CUSTOMER).sellingPlanId).toBe("gid://shopify/SellingPlan/2");
  });

  test.each([
    ["FAILED", "PAYMENT_FAILED"],
    ["PAUSED", "PAUSED"],
    ["CANCELLED", "CANCELLED"],
    ["EXPIRED", "EXPIRED"],
  ])("in the platform's state %s is %s", (status, expected) => {
    const { status: own } = subscriptionRecord(contractNode({ status }), [], CUSTOMER);
    expect(String(own)).toBe(expected);
  });

  test("may have no next billing date", () => {
    expect(subscriptionRecord(contractNode({ nextBillingDate: null }), [], CUSTOMER).nextBillingDate).toBeNull();
  });
});

const MONEY: OrderMoney = { lines: [], subtotalCents: 2500, discountCents: 0, creditsCents: 0 };
const EXPECTED: OrderMoney = { lines: [], subtotalCents: 9900, discountCents: 0, creditsCents: 0 };
const STARTED = "2026-01-01T00:00:00.000Z";
const ENDED = "2026-01-01T00:01:00.000Z";

describe("a checkout", () => {
  const order = { id: ORDER, createdAt: STARTED, processedAt: ENDED, displayFinancialStatus: "PAID" };

  test.each(["PAID", "PARTIALLY_PAID", "PARTIALLY_REFUNDED", "REFUNDED"])(
    "counts as charged in the state %s",
    (status) => {
      const outcome = { kind: "charged" as const, order: { shopifyId: ORDER, ...MONEY } };
      const attempt = checkoutAttempt({ ...order, displayFinancialStatus: status }, MONEY);
      expect(attempt).toEqual({ startedAt: ENDED, endedAt: ENDED, outcome });
    },
  );

  test.each(["VOIDED", "EXPIRED"])("has ended without a charge in the state %p", (displayFinancialStatus) => {
    const attempt = checkoutAttempt({ ...order, displayFinancialStatus }, MONEY);
    expect(attempt).toEqual({ startedAt: ENDED, endedAt: ENDED, outcome: { kind: "voided" } });
  });

  test.each(["PENDING", "AUTHORIZED", null])("waits in the state %p", (displayFinancialStatus) => {
    const attempt = checkoutAttempt({ ...order, displayFinancialStatus, processedAt: null }, MONEY);
    expect(attempt).toEqual({ startedAt: STARTED, endedAt: null, outcome: { kind: "waiting" } });
  });
});

describe("a billing attempt", () => {
  const HOUR_MS = 3_600_000;
  const ATTEMPT = { id: "gid://shopify/SubscriptionBillingAttempt/1", idempotencyKey: "key" };
  const success = (order: string | null): AttemptNode => ({
    ...ATTEMPT,
    createdAt: STARTED,
    completedAt: ENDED,
    state: { __typename: "SubscriptionBillingAttemptSuccessState", order: order === null ? null : { id: order } },
  });
  const read = (node: AttemptNode, money: OrderMoney | undefined, now = Date.parse(ENDED)) =>
    billingAttempt(node, () => money, EXPECTED, now);

  test.each([
    [{ payment: "CARD_DECLINED" }, "card_declined", false],
    [{ inventory: "INSUFFICIENT_INVENTORY" }, "insufficient_inventory", true],
    [{ general: "UNEXPECTED" }, "unexpected", false],
    [{}, "unexpected_error", false],
  ])("with the error %j is declined", (error, reason, outOfStock) => {
    const state = { __typename: "SubscriptionBillingAttemptFailedState" as const, error };
    const attempt = read({ ...ATTEMPT, createdAt: STARTED, completedAt: null, state }, undefined);
    expect(attempt).toEqual({
      startedAt: STARTED,
      endedAt: STARTED,
      outcome: { kind: "declined", reason, outOfStock },
    });
  });

  test.each(["SubscriptionBillingAttemptPendingState", "SubscriptionBillingAttemptActionRequiredState"] as const)(
    "in the state %s waits",
    (__typename) => {
      const attempt = read({ ...ATTEMPT, createdAt: STARTED, completedAt: ENDED, state: { __typename } }, MONEY);
      expect(attempt).toEqual({ startedAt: STARTED, endedAt: null, outcome: { kind: "waiting" } });
    },
  );

  test("has the money of its order after a success", () => {
    const outcome = { kind: "charged" as const, order: { shopifyId: ORDER, ...MONEY } };
    expect(read(success(ORDER), MONEY)).toEqual({ startedAt: STARTED, endedAt: ENDED, outcome });
  });

  test.each([ORDER, null])(
    "waits an hour after a success for its order %p, and has the contract's money then",
    (order) => {
      const end = Date.parse(ENDED) + HOUR_MS;
      expect(read(success(order), undefined, end - 1)).toEqual({
        startedAt: STARTED,
        endedAt: null,
        outcome: { kind: "waiting" },
      });
      const outcome = { kind: "charged" as const, order: { shopifyId: order, ...EXPECTED } };
      expect(read(success(order), undefined, end)).toEqual({ startedAt: STARTED, endedAt: ENDED, outcome });
    },
  );
});
