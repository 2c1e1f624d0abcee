import { decide } from "../../domain/decide/change.ts";
import { type MirrorView, WITHOUT_FIELDS } from "../../domain/decide/snapshot.ts";
import { createShopIds } from "../../domain/ids.ts";
import type { IncomingRecord, RecordType } from "../../domain/records/record-schemas.ts";
import type { Customer, Order, Subscription } from "../../domain/resources.ts";
import type { CustomerRow, OrderRow, SubscriptionRow } from "../../domain/rows.ts";

/** The shop of the samples. */
export const DOMAIN = "alpha.myshopify.com";
const NOW = Date.parse("2026-02-01T00:00:10.000Z");
const customer = "gid://shopify/Customer/7";
const subscription = "gid://shopify/SubscriptionContract/1";
const line = {
  variantId: "gid://shopify/ProductVariant/11",
  productId: "gid://shopify/Product/12",
  title: "House blend",
  quantity: 2,
  unitPriceCents: 1250,
};

/** A record of each type, with every field. All records are about one customer, and can be sent in this order. */
export const SAMPLE_RECORDS: { [T in RecordType]: Extract<IncomingRecord, { type: T }> } = {
  customer: {
    type: "customer",
    shopifyId: customer,
    email: "ada@example.com",
    firstName: "Ada",
    lastName: "Brandt",
    marketingConsent: true,
    creditsCents: 500,
    loyaltyTier: 1,
  },
  subscription: {
    type: "subscription",
    shopifyId: subscription,
    customer,
    status: "ACTIVE",
    interval: "MONTH",
    intervalCount: 1,
    sellingPlanId: "gid://shopify/SellingPlan/3",
    lines: [line],
    nextBillingDate: "2026-03-01T00:00:00.000Z",
    startedAt: "2026-01-01T00:00:00.000Z",
    cancelledAt: null,
    cyclesCompleted: 1,
    churnType: null,
    revision: "1",
  },
  order: {
    type: "order",
    subscription,
    source: "recurring",
    cycleNumber: 1,
    shopifyId: "gid://shopify/Order/9",
    status: "PAID",
    lines: [line],
    subtotalCents: 2500,
    discountCents: 500,
    creditsCents: 100,
    billedAt: "2026-02-01T00:00:00.000Z",
    attemptCount: 1,
    reason: null,
    nextRetryAt: null,
    retriesExhausted: null,
  },
  reward: { type: "reward", id: "r-1", source: "streak", customer, milestone: 5, cycles: 5 },
  cancel_flow: {
    type: "cancel_flow",
    id: "c-1",
    subscription,
    reason_id: "too_expensive",
    offer_type: "discount",
    accepted: true,
    saved: true,
  },
  custom_field: { type: "custom_field", subscription, key: "gift_note", value: "Happy birthday!", by: "merchant" },
};

/** Returns the rows that the sample records make in an empty mirror. */
export function sampleRows(): { subscriptions: Subscription; customers: Customer; orders: Order } {
  let customer: CustomerRow | undefined;
  let subscription: SubscriptionRow | undefined;
  let order: OrderRow | undefined;
  const mirror: MirrorView = {
    ids: createShopIds(DOMAIN),
    changeCount: 0,
    customer: () => customer,
    subscription: () => subscription,
    order: () => order,
    hasOccurrence: () => false,
    ...WITHOUT_FIELDS,
  };
  for (const record of Object.values(SAMPLE_RECORDS)) {
    const decision = decide(mirror, record, NOW);
    for (const row of "refused" in decision ? [] : decision.rows) {
      if (row.kind === "customer") customer = row;
      if (row.kind === "subscription") subscription = row;
      if (row.kind === "order") order = row;
    }
  }
  if (customer === undefined || subscription === undefined || order === undefined)
    throw new Error("a sample record was refused");
  return { customers: customer.resource, subscriptions: subscription.resource, orders: order.resource };
}
