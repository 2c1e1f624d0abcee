import { type Static, Type } from "@sinclair/typebox";

/** The values of each status (docs/api.md, "Fields"). */
export const SUBSCRIPTION_STATUSES = ["ACTIVE", "PAUSED", "CANCELLED", "PAYMENT_FAILED", "EXPIRED"] as const;
export const ORDER_STATUSES = ["PENDING", "PAID", "RECOVERED", "FAILED", "UNCOLLECTIBLE", "SKIPPED"] as const;
export const ORDER_SOURCES = ["checkout", "recurring"] as const;

export function oneOf<const T extends readonly string[]>(values: T) {
  return Type.Unsafe<T[number]>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      { must: `must be one of ${values.join(", ")}` },
    ),
  );
}

const gid = Type.String();
const date = Type.String();
const orNull = <T extends ReturnType<typeof Type.String>>(schema: T) => Type.Union([schema, Type.Null()]);

/** A line item of a subscription or an order. */
const LineItem = Type.Object({
  variantId: gid,
  productId: gid,
  title: Type.String(),
  quantity: Type.Integer(),
  unitPriceCents: Type.Integer(),
});
export type LineItem = Static<typeof LineItem>;

/** A subscription contract. The fields have the order of the API's answer. */
export const Subscription = Type.Object({
  id: Type.String(),
  shopifyId: gid,
  customerId: Type.String(),
  status: oneOf(SUBSCRIPTION_STATUSES),
  interval: oneOf(["DAY", "WEEK", "MONTH"]),
  intervalCount: Type.Integer(),
  sellingPlanId: orNull(gid),
  lines: Type.Array(LineItem),
  nextBillingDate: orNull(date),
  cyclesCompleted: Type.Integer(),
  startedAt: date,
  cancelledAt: orNull(date),
});
export type Subscription = Static<typeof Subscription>;

/** A customer, with its fields in the order of the API's answer. */
export const Customer = Type.Object({
  id: Type.String(),
  shopifyId: gid,
  email: orNull(Type.String()),
  firstName: orNull(Type.String()),
  lastName: orNull(Type.String()),
  marketingConsent: Type.Boolean(),
  creditsCents: Type.Integer(),
  loyaltyTier: Type.Integer(),
  subscriptionCount: Type.Integer(),
  createdAt: date,
});
export type Customer = Static<typeof Customer>;

/** An order, with its fields in the order of the API's answer. */
export const Order = Type.Object({
  id: Type.String(),
  shopifyId: orNull(gid),
  contractId: Type.String(),
  customerId: Type.String(),
  source: oneOf(ORDER_SOURCES),
  cycleNumber: Type.Integer(),
  status: oneOf(ORDER_STATUSES),
  lines: Type.Array(LineItem),
  subtotalCents: Type.Integer(),
  discountCents: Type.Integer(),
  creditsCents: Type.Integer(),
  totalCents: Type.Integer(),
  billedAt: date,
});
export type Order = Static<typeof Order>;

export const RESOURCES = ["subscriptions", "customers", "orders"] as const;
export type Resource = (typeof RESOURCES)[number];
