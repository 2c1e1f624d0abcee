import { FormatRegistry, type Static, Type } from "@sinclair/typebox";
import { isWrittenDate } from "../lib/time.ts";

/** The possible statuses (docs/api.md, "Fields"). */
export const SUBSCRIPTION_STATUSES = ["ACTIVE", "PAUSED", "CANCELLED", "PAYMENT_FAILED", "EXPIRED"] as const;
export const ORDER_STATUSES = ["PENDING", "PAID", "RECOVERED", "FAILED", "UNCOLLECTIBLE", "SKIPPED"] as const;
export const ORDER_SOURCES = ["checkout", "recurring"] as const;
export const INTERVALS = ["DAY", "WEEK", "MONTH"] as const;
/** Maximum number of line items in a record, and so in its row. */
export const MAX_LINES = 250;

/** Makes the schema of a text that must be one of `values`. The schema's `must` is the text of the refusal. */
export function oneOf<const T extends readonly string[]>(values: T, description?: string) {
  return Type.Unsafe<T[number]>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      { must: `must be one of ${values.join(", ")}`, ...(description !== undefined && { description }) },
    ),
  );
}

/** Returns the pattern of the gids of a platform object (docs/api.md, "Fields"). */
export function gidPattern(object: string): string {
  return `^gid://shopify/${object}/[1-9][0-9]{0,19}$`;
}

/** Returns the pattern of internal ids with a prefix (docs/api.md, "Ids"). */
export function idPattern(prefix: string): string {
  return `^${prefix}[a-z2-7]{24}$`;
}

/** The format of dates that the program writes. Incoming records have another date format. */
const DATE_FORMAT = "date-time";
FormatRegistry.Set(DATE_FORMAT, isWrittenDate);

export const gidField = (object: string, description: string) =>
  Type.String({ pattern: gidPattern(object), description });
export const idField = (prefix: string, description: string) =>
  Type.String({ pattern: idPattern(prefix), description });
export const dateField = (description: string) => Type.String({ format: DATE_FORMAT, description });
const cents = (description: string) => Type.Integer({ description });
export const countField = (description: string) => Type.Integer({ minimum: 0, description });

/** Makes the schema of a string or null. The new schema gets the description of `schema`. */
export function orNull<T extends ReturnType<typeof Type.String>>(schema: T) {
  const { description = "" } = schema;
  return Type.Union([schema, Type.Null()], { description });
}

/** A line item of a subscription or an order. */
const LineItem = Type.Object(
  {
    variantId: gidField("ProductVariant", "Gid of the product variant."),
    productId: gidField("Product", "Gid of the product."),
    title: Type.String(),
    quantity: Type.Integer({ minimum: 1, description: "1 or more." }),
    unitPriceCents: cents("Price of one piece."),
  },
  { title: "LineItem", description: "A line item of a subscription or an order." },
);
export type LineItem = Static<typeof LineItem>;
const lines = Type.Array(LineItem, { maxItems: MAX_LINES, description: `Line items, at most ${MAX_LINES}.` });

/** A subscription contract. The API serves its fields in this order. */
export const Subscription = Type.Object(
  {
    id: idField("sub_", "Internal id of the contract. Never changes."),
    shopifyId: gidField("SubscriptionContract", "Gid of the contract."),
    customerId: idField("cus_", "`id` of its customer."),
    status: oneOf(SUBSCRIPTION_STATUSES, "`ACTIVE`, `PAUSED`, `CANCELLED`, `PAYMENT_FAILED` or `EXPIRED`."),
    interval: oneOf(INTERVALS, "`DAY`, `WEEK` or `MONTH`. A yearly contract is 12 months."),
    intervalCount: Type.Integer({ minimum: 1, description: "Intervals from one billing to the next." }),
    sellingPlanId: orNull(gidField("SellingPlan", "Gid of the selling plan.")),
    lines,
    nextBillingDate: orNull(dateField("Always null for `CANCELLED` and `EXPIRED`.")),
    cyclesCompleted: countField(
      "Renewals billed so far, as the source counts them. If the source does not count them, the number of `PAID` " +
        "and `RECOVERED` renewals in the mirror.",
    ),
    startedAt: dateField("Sort field. Never changes."),
    cancelledAt: orNull(
      dateField(
        "Date of the cancellation, from the source. If the source gives none, the time when the mirror saw the " +
          "cancellation. Null if the contract was cancelled before the mirror first saw it.",
      ),
    ),
  },
  { title: "Subscription", description: "A subscription contract." },
);
export type Subscription = Static<typeof Subscription>;

/** A customer. The API serves its fields in this order. */
export const Customer = Type.Object(
  {
    id: idField("cus_", "Internal id. Never changes."),
    shopifyId: gidField("Customer", "Gid of the customer."),
    email: orNull(Type.String({ description: "Also null if the app may not read it, and after a redaction." })),
    firstName: orNull(Type.String({ description: "Null in the same cases as `email`." })),
    lastName: orNull(Type.String({ description: "Null in the same cases as `email`." })),
    marketingConsent: Type.Boolean({ description: "Whether marketing e-mail is allowed." }),
    creditsCents: cents("Balance of loyalty store credit."),
    loyaltyTier: countField("0 is the base tier."),
    subscriptionCount: countField("Contracts of the customer, of any status."),
    createdAt: dateField("When the mirror first saw the customer. Sort field. Never changes."),
  },
  { title: "Customer", description: "A customer who has, or had, a subscription." },
);
export type Customer = Static<typeof Customer>;

/** An order. The API serves its fields in this sequence. */
export const Order = Type.Object(
  {
    id: idField("ord_", "Internal id. Never changes."),
    shopifyId: orNull(
      gidField(
        "Order",
        "Gid of the platform's order. Null until a charge succeeds: a declined attempt has no platform order.",
      ),
    ),
    contractId: idField("sub_", "`id` of its subscription."),
    customerId: idField("cus_", "`id` of its customer."),
    source: oneOf(ORDER_SOURCES, "`checkout` or `recurring`."),
    cycleNumber: countField("Which renewal of the contract: 1 is the first. 0 for a checkout."),
    status: oneOf(
      ORDER_STATUSES,
      "`PENDING`, `PAID`, `RECOVERED` (paid after a decline), `FAILED`, `UNCOLLECTIBLE` (declined, and retries are " +
        "finished or the contract has ended; or a checkout whose payment was cancelled) or `SKIPPED`.",
    ),
    lines,
    subtotalCents: cents("Sum of the lines, before discounts and credits are subtracted."),
    discountCents: cents("Discounts."),
    creditsCents: cents("Store credit."),
    totalCents: cents("Always `subtotalCents` minus `discountCents` minus `creditsCents`."),
    billedAt: dateField("First billing attempt. Sort field. Never changes."),
  },
  { title: "Order", description: "A subscriber's first checkout, or one renewal of a contract." },
);
export type Order = Static<typeof Order>;

export const RESOURCES = ["subscriptions", "customers", "orders"] as const;
export type Resource = (typeof RESOURCES)[number];
