import type {
  CancelFlowRecord,
  CustomerRecord,
  OrderRecord,
  RewardRecord,
  SubscriptionRecord,
} from "../../domain/records/record-schemas.ts";
import type { LineItem, Order } from "../../domain/resources.ts";
import { isoUtc } from "../../lib/time.ts";

/** Records of what the platform knows. */
export type PlatformRecord = CustomerRecord | SubscriptionRecord | OrderRecord;
export type SampleRecord = PlatformRecord | RewardRecord | CancelFlowRecord;

export const DAY = 86_400_000;
/** The time from one billing of a contract to the next: four weeks. */
export const CYCLE_MS = 28 * DAY;
const FIRST_NAMES = "Ada Ben Chiara Deniz Elif Femi Greta Hugo Ines Jonas Keiko Lena Mateo Noor Oskar Priya".split(" ");
const LAST_NAMES = "Abe Brandt Costa Dubois Eriksen Fischer Garcia Haddad Ito Jansen Kowalska Lindqvist Moreau".split(
  " ",
);
const PRODUCTS = [
  { title: "House blend, 1 kg", cents: 2400 },
  { title: "Single origin Ethiopia, 500 g", cents: 1650 },
  { title: "Decaf, 500 g", cents: 1450 },
  { title: "Espresso roast, 1 kg", cents: 2600 },
  { title: "Oat milk, 6 × 1 l", cents: 1390 },
];
const DECLINE_REASONS = ["insufficient_funds", "expired_payment_method", "payment_method_declined"];
const CANCEL_REASONS = ["too_expensive", "too_much_product", "moving", "prefer_another"];

export function isOfPlatform(record: SampleRecord): record is PlatformRecord {
  return record.type === "customer" || record.type === "subscription" || record.type === "order";
}

/** @param number the number in the gid */
export function sampleCustomer(number: number): CustomerRecord {
  const firstName = pick(FIRST_NAMES);
  const lastName = pick(LAST_NAMES);
  return {
    type: "customer",
    shopifyId: `gid://shopify/Customer/${number}`,
    email: `${firstName}.${lastName}.${number}@example.com`.toLowerCase(),
    firstName,
    lastName,
    marketingConsent: Math.random() < 0.6,
    loyaltyTier: Math.floor(Math.random() * 3),
    creditsCents: Math.random() < 0.3 ? 500 : 0,
  };
}

/** Makes a contract with the same number as its customer. @param at the contract's start, epoch milliseconds */
export function sampleSubscription(number: number, at: number): SubscriptionRecord {
  return {
    type: "subscription",
    shopifyId: `gid://shopify/SubscriptionContract/${number}`,
    customer: `gid://shopify/Customer/${number}`,
    status: "ACTIVE",
    interval: "WEEK",
    intervalCount: 4,
    sellingPlanId: `gid://shopify/SellingPlan/${1 + Math.floor(Math.random() * 3)}`,
    lines: [sampleLine()],
    nextBillingDate: isoUtc(at + CYCLE_MS),
    startedAt: isoUtc(at),
  };
}

interface OrderDetails {
  /** 0 for the checkout order. */
  cycle: number;
  /** Epoch milliseconds. */
  at: number;
  status: Order["status"];
  /** Number in the gid of a charged order. Other orders have no gid. */
  number: number;
}

export function sampleOrder(
  subscription: SubscriptionRecord,
  { cycle, at, status, number }: OrderDetails,
): OrderRecord {
  const subtotalCents = subscription.lines.reduce(
    (sum, { quantity, unitPriceCents }) => sum + quantity * unitPriceCents,
    0,
  );
  const isCharged = status === "PAID" || status === "RECOVERED";
  const isDeclined = status === "FAILED" || status === "UNCOLLECTIBLE";
  return {
    type: "order",
    subscription: subscription.shopifyId,
    source: cycle === 0 ? "checkout" : "recurring",
    cycleNumber: cycle,
    shopifyId: isCharged ? `gid://shopify/Order/${number}` : null,
    status,
    lines: subscription.lines,
    subtotalCents,
    discountCents: Math.round(subtotalCents / 10),
    creditsCents: 0,
    billedAt: isoUtc(at),
    ...(isDeclined && {
      attemptCount: status === "FAILED" ? 1 : 4,
      reason: pick(DECLINE_REASONS),
      nextRetryAt: status === "FAILED" ? isoUtc(at + DAY) : null,
      retriesExhausted: status === "UNCOLLECTIBLE",
    }),
  };
}

export function sampleReward(number: number, customer: string, cycles: number): RewardRecord {
  const source = pick(["loyalty", "streak", "referral"]);
  const fields = { loyalty: { credit_cents: 500 }, streak: { milestone: 5, cycles }, referral: { reward_cents: 1000 } }[
    source
  ];
  return { type: "reward", id: `reward-${number}`, source, customer, ...fields };
}

export function sampleCancelFlow(number: number, subscription: string): CancelFlowRecord {
  const accepted = Math.random() < 0.4;
  const offer_type = pick(["discount", "pause", null]);
  return {
    type: "cancel_flow",
    id: `flow-${number}`,
    subscription,
    reason_id: pick(CANCEL_REASONS),
    offer_type,
    accepted,
    saved: accepted,
  };
}

function sampleLine(): LineItem {
  const index = Math.floor(Math.random() * PRODUCTS.length);
  const { title, cents } = PRODUCTS[index] as (typeof PRODUCTS)[number];
  return {
    variantId: `gid://shopify/ProductVariant/${index + 1}`,
    productId: `gid://shopify/Product/${index + 1}`,
    title,
    quantity: pick([1, 1, 2]),
    unitPriceCents: cents,
  };
}

export function pick<const T>(values: readonly T[]): T {
  return values[Math.floor(Math.random() * values.length)] as T;
}
