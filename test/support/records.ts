import type { BillingAttempt, BillingCycleRecord } from "../../src/domain/records/platform-records.ts";
import type {
  CancelFlowRecord,
  CustomerRecord,
  CustomFieldRecord,
  OrderRecord,
  RewardRecord,
  SubscriptionRecord,
} from "../../src/domain/records/record-schemas.ts";
import type { LineItem } from "../../src/domain/resources.ts";

export const gid = {
  customer: (n: number | string) => `gid://shopify/Customer/${n}`,
  contract: (n: number | string) => `gid://shopify/SubscriptionContract/${n}`,
  order: (n: number | string) => `gid://shopify/Order/${n}`,
};

export const line: LineItem = {
  variantId: "gid://shopify/ProductVariant/11",
  productId: "gid://shopify/Product/12",
  title: "House blend",
  quantity: 2,
  unitPriceCents: 1250,
};

export function customer(n: number, fields: Partial<CustomerRecord> = {}): CustomerRecord {
  return { type: "customer", shopifyId: gid.customer(n), ...fields };
}

/** The customers 1 to `count`. */
export function customers(count: number, fields: Partial<CustomerRecord> = {}): CustomerRecord[] {
  return Array.from({ length: count }, (_, index) => customer(index + 1, fields));
}

export function subscription(n: number, fields: Partial<SubscriptionRecord> = {}): SubscriptionRecord {
  return {
    type: "subscription",
    shopifyId: gid.contract(n),
    customer: gid.customer(n),
    status: "ACTIVE",
    interval: "MONTH",
    intervalCount: 1,
    sellingPlanId: "gid://shopify/SellingPlan/3",
    lines: [line],
    nextBillingDate: "2026-02-01T00:00:00.000Z",
    startedAt: "2026-01-01T00:00:00.000Z",
    ...fields,
  };
}

export function fieldValue(n: number, key: string, value: CustomFieldRecord["value"]): CustomFieldRecord {
  return { type: "custom_field", subscription: gid.contract(n), key, value, by: "merchant" };
}

/** A renewal order of contract n. */
export function order(n: number, cycleNumber: number, fields: Partial<OrderRecord> = {}): OrderRecord {
  return {
    type: "order",
    subscription: gid.contract(n),
    source: "recurring",
    cycleNumber,
    shopifyId: gid.order(n * 1000 + cycleNumber),
    status: "PAID",
    lines: [line],
    subtotalCents: 2500,
    discountCents: 500,
    creditsCents: 100,
    billedAt: "2026-02-01T00:00:00.000Z",
    ...fields,
  };
}

export function reward(id: string, fields: Partial<RewardRecord> = {}): RewardRecord {
  return { type: "reward", id, source: "streak", customer: gid.customer(1), milestone: 5, ...fields };
}

export function cancelFlow(id: string, fields: Partial<CancelFlowRecord> = {}): CancelFlowRecord {
  return {
    type: "cancel_flow",
    id,
    subscription: gid.contract(1),
    reason_id: "price",
    offer_type: null,
    accepted: false,
    saved: false,
    ...fields,
  };
}

/**
 * The outcome of an attempt, and its day in February: `card_declined@9`. The outcome is `charged`, `waiting` or the
 * reason of a decline.
 */
export type AttemptText = `${string}@${number}`;

/**
 * A record of a cycle of contract n. The order of a charge has the day of the charge as its number. The decline reason
 * `out_of_stock` does not concern the payment.
 */
export function billingCycle(
  n: number,
  cycleNumber: number,
  attempts: readonly AttemptText[],
  fields: Partial<BillingCycleRecord> = {},
): BillingCycleRecord {
  const money = { lines: [line], subtotalCents: 2500, discountCents: 500, creditsCents: 100 };
  const at = (day: number) => `2026-02-${String(day).padStart(2, "0")}T00:00:00.000Z`;
  return {
    type: "billing_cycle",
    subscription: gid.contract(n),
    source: "recurring",
    cycleNumber,
    skipped: false,
    expectedAt: at(1),
    contractEnded: false,
    expected: { ...money, creditsCents: 0 },
    retryPlan: [1, 3, 5],
    attempts: attempts.map((text): BillingAttempt => {
      const [reason = "", day = ""] = text.split("@");
      const startedAt = at(Number(day));
      if (reason === "waiting") return { startedAt, endedAt: null, outcome: { kind: "waiting" } };
      const order = { shopifyId: gid.order(Number(day)), ...money };
      const ended = { startedAt, endedAt: startedAt };
      if (reason === "charged") return { ...ended, outcome: { kind: "charged", order } };
      return { ...ended, outcome: { kind: "declined", reason, outOfStock: reason === "out_of_stock" } };
    }),
    ...fields,
  };
}
