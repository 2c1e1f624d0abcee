import { FormatRegistry, type Static, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { parseUtc } from "../lib/time.ts";
import { ORDER_SOURCES, ORDER_STATUSES, oneOf, SUBSCRIPTION_STATUSES } from "./resources.ts";

/** Characters in a string, and lines in a record (docs/records.md, "Limits"). */
export const MAX_STRING = 1024;
export const MAX_LINES = 250;
const MAX_INTERVAL_COUNT = 100_000;

FormatRegistry.Set("text", isText);
FormatRegistry.Set("utc-date", (text) => parseUtc(text) !== undefined);

/** Characters are code points. Half a surrogate pair cannot be stored, and PostgreSQL cannot store U+0000. */
export function isText(text: string): boolean {
  const isShort = text.length <= MAX_STRING || (text.length <= 2 * MAX_STRING && [...text].length <= MAX_STRING);
  return isShort && text.isWellFormed() && !text.includes("\0");
}

export const TEXT_RULE = `of at most ${MAX_STRING} characters, without U+0000`;
const text = Type.String({ format: "text", must: `must be a well-formed string ${TEXT_RULE}` });
const date = Type.String({
  format: "utc-date",
  must: "must be an ISO 8601 date in UTC, like 2026-01-31T09:30:00.000Z",
});
const flag = Type.Boolean({ must: "must be true or false" });
const cents = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  must: "must be a whole amount in minor units, 0 or more and a safe integer",
});
const count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, must: "must be a whole number, 0 or more" });

/** The pattern of the platform's ids of an object, such as `Customer`. */
export function gidPattern(object: string): string {
  return `^gid://shopify/${object}/[1-9][0-9]{0,19}$`;
}

function gid(object: string) {
  return Type.String({ pattern: gidPattern(object), must: `must be a gid like gid://shopify/${object}/123` });
}

function nullable<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()], { must: `${schema["must"]}, or null` });
}

function optional<T extends TSchema>(schema: T) {
  return Type.Optional(nullable(schema));
}

function positive(maximum: number) {
  return Type.Integer({ minimum: 1, maximum, must: `must be a whole number from 1 to ${maximum}` });
}

function record<T extends string, P extends TProperties>(
  type: T,
  fields: P,
  additionalProperties: TSchema | false = false,
) {
  return Type.Object({ type: Type.Literal(type), ...fields }, { additionalProperties });
}

const lineItem = Type.Object(
  {
    variantId: gid("ProductVariant"),
    productId: gid("Product"),
    title: text,
    quantity: positive(Number.MAX_SAFE_INTEGER),
    unitPriceCents: cents,
  },
  { additionalProperties: false, must: "must be a line item" },
);
export const LINE_FIELDS = Object.keys(lineItem.properties);
const lines = Type.Array(lineItem, {
  maxItems: MAX_LINES,
  must: `must be an array of at most ${MAX_LINES} line items`,
});

const Customer = record("customer", {
  shopifyId: gid("Customer"),
  email: optional(text),
  firstName: optional(text),
  lastName: optional(text),
  marketingConsent: optional(flag),
  creditsCents: optional(cents),
  loyaltyTier: optional(count),
});

const Subscription = record("subscription", {
  shopifyId: gid("SubscriptionContract"),
  customer: gid("Customer"),
  status: oneOf(SUBSCRIPTION_STATUSES),
  interval: oneOf(["DAY", "WEEK", "MONTH", "YEAR"]),
  intervalCount: positive(MAX_INTERVAL_COUNT),
  sellingPlanId: nullable(gid("SellingPlan")),
  lines,
  nextBillingDate: nullable(date),
  startedAt: date,
  cancelledAt: optional(date),
  cyclesCompleted: optional(count),
  churnType: optional(oneOf(["voluntary", "involuntary"])),
  revision: optional(Type.String({ pattern: "^[0-9]{1,40}$", must: "must be a decimal number in a string" })),
});

const Order = record("order", {
  subscription: gid("SubscriptionContract"),
  source: oneOf(ORDER_SOURCES),
  cycleNumber: count,
  shopifyId: nullable(gid("Order")),
  status: oneOf(ORDER_STATUSES),
  lines,
  subtotalCents: cents,
  discountCents: cents,
  creditsCents: cents,
  billedAt: date,
  attemptCount: optional(count),
  reason: optional(text),
  nextRetryAt: optional(date),
  retriesExhausted: optional(flag),
});

const eventId = Type.String({
  format: "text",
  minLength: 1,
  must: `must be a well-formed string of 1 to ${MAX_STRING} characters, without U+0000`,
});

export const Reward = record(
  "reward",
  { id: eventId, source: oneOf(["loyalty", "streak", "referral"]), customer: gid("Customer") },
  Type.Unknown(),
);

const CancelFlow = record("cancel_flow", {
  id: eventId,
  subscription: gid("SubscriptionContract"),
  reason_id: nullable(text),
  offer_type: nullable(text),
  accepted: flag,
  saved: flag,
});

/** The schema of each type of record. `must` is the text of a refusal. */
export const RECORD_SCHEMAS = {
  customer: Customer,
  subscription: Subscription,
  order: Order,
  reward: Reward,
  cancel_flow: CancelFlow,
};
export type RecordType = keyof typeof RECORD_SCHEMAS;
export const RECORD_TYPES = Object.keys(RECORD_SCHEMAS) as RecordType[];

export type SubscriptionFields = Static<typeof Subscription>;

/**
 * Only the platform's adapter gives `asOf` and, where the consent has its own time, `consentAsOf` (epoch milliseconds):
 * the platform's data about a customer can arrive in any order.
 */
export type CustomerRecord = Static<typeof Customer> & { asOf?: number; consentAsOf?: number };
/** The interval is never YEAR once parsed. */
export type SubscriptionRecord = SubscriptionFields & { interval: "DAY" | "WEEK" | "MONTH" };
export type OrderRecord = Static<typeof Order>;
export type RewardRecord = Static<typeof Reward> & { [field: string]: unknown };
export type CancelFlowRecord = Static<typeof CancelFlow>;
/** A record from outside (docs/records.md), checked and normalised: dates to the millisecond, YEAR as MONTH × 12. */
export type IncomingRecord = CustomerRecord | SubscriptionRecord | OrderRecord | RewardRecord | CancelFlowRecord;
