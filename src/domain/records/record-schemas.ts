import { FormatRegistry, type Static, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { parseUtc } from "../../lib/time.ts";
import {
  gidPattern,
  INTERVALS,
  MAX_LINES,
  ORDER_SOURCES,
  ORDER_STATUSES,
  oneOf,
  SUBSCRIPTION_STATUSES,
} from "../resources.ts";

/** Maximum number of characters in a string (docs/records.md, "Limits"). */
export const MAX_STRING = 1024;
const MAX_INTERVAL_COUNT = 100_000;
export const CHURN_TYPES = ["voluntary", "involuntary"] as const;
export const REWARD_SOURCES = ["loyalty", "streak", "referral"] as const;

/** String formats that this program defines for its schemas. */
export const TEXT_FORMAT = "text";
export const RECORD_DATE_FORMAT = "utc-date";
FormatRegistry.Set(TEXT_FORMAT, isText);
FormatRegistry.Set(RECORD_DATE_FORMAT, (text) => parseUtc(text) !== undefined);

/**
 * Whether a text can be stored: at most MAX_STRING code points, well-formed, and without U+0000. PostgreSQL cannot
 * store U+0000.
 */
export function isText(text: string): boolean {
  const isShort = text.length <= MAX_STRING || (text.length <= 2 * MAX_STRING && [...text].length <= MAX_STRING);
  return isShort && text.isWellFormed() && !text.includes("\0");
}

export const TEXT_RULE = `of at most ${MAX_STRING} characters, without U+0000`;
const text = Type.String({ format: TEXT_FORMAT, must: `must be a well-formed string ${TEXT_RULE}` });
const date = Type.String({
  format: RECORD_DATE_FORMAT,
  must: "must be an ISO 8601 date in UTC, like 2026-01-31T09:30:00.000Z",
});
const flag = Type.Boolean({ must: "must be true or false" });
const cents = Type.Integer({
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  must: "must be a whole amount in minor units, 0 or more and a safe integer",
});
const count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, must: "must be a whole number, 0 or more" });

function gid(object: string) {
  return Type.String({ pattern: gidPattern(object), must: `must be a gid like gid://shopify/${object}/123` });
}

function nullable<T extends TSchema>(schema: T, description?: string) {
  return Type.Union([schema, Type.Null()], {
    must: `${schema["must"]}, or null`,
    ...(description !== undefined && { description }),
  });
}

function optional<T extends TSchema>(schema: T, description?: string) {
  return Type.Optional(nullable(schema, description));
}

/** Returns the schema with another description, from the tables in docs/records.md. */
function described<T extends TSchema>(schema: T, description: string): T {
  return { ...schema, description };
}

function positive(maximum: number) {
  return Type.Integer({ minimum: 1, maximum, must: `must be a whole number from 1 to ${maximum}` });
}

function record<T extends string, P extends TProperties>(
  type: T,
  options: { title: string; description: string; additionalProperties?: TSchema },
  fields: P,
) {
  return Type.Object({ type: Type.Literal(type), ...fields }, { additionalProperties: false, ...options });
}

const NEW_CUSTOMER = "A customer that is not in the mirror yet is added, without data.";
const FIRST_COUNTS = "The first one counts; later ones change nothing.";
const OWN_ID = "your own id, 1 to 1,024 characters.";

const lineItem = Type.Object(
  {
    variantId: gid("ProductVariant"),
    productId: gid("Product"),
    title: text,
    quantity: positive(Number.MAX_SAFE_INTEGER),
    unitPriceCents: cents,
  },
  {
    title: "RecordLineItem",
    description: "A line item of a record.",
    additionalProperties: false,
    must: "must be a line item",
  },
);
export const LINE_FIELDS = Object.keys(lineItem.properties);
const lines = Type.Array(lineItem, {
  maxItems: MAX_LINES,
  must: `must be an array of at most ${MAX_LINES} line items`,
});

const Customer = record(
  "customer",
  { title: "CustomerRecord", description: "The state of a customer." },
  {
    shopifyId: gid("Customer"),
    email: optional(text),
    firstName: optional(text),
    lastName: optional(text),
    marketingConsent: optional(flag, "null is false"),
    creditsCents: optional(cents, "null is 0"),
    loyaltyTier: optional(count, "null is 0"),
  },
);

const Subscription = record(
  "subscription",
  { title: "SubscriptionRecord", description: "The state of a subscription contract." },
  {
    shopifyId: gid("SubscriptionContract"),
    customer: described(gid("Customer"), NEW_CUSTOMER),
    status: oneOf(SUBSCRIPTION_STATUSES),
    interval: oneOf([...INTERVALS, "YEAR"], "A year is kept as 12 months."),
    intervalCount: positive(MAX_INTERVAL_COUNT),
    sellingPlanId: nullable(gid("SellingPlan")),
    lines,
    nextBillingDate: nullable(date, "The mirror has null for `CANCELLED` and `EXPIRED`, whatever the record says."),
    startedAt: described(date, FIRST_COUNTS),
    cancelledAt: optional(
      date,
      "If it is never given, the mirror notes the time at which it saw the cancellation; null if the contract was " +
        "cancelled before the mirror first saw it.",
    ),
    cyclesCompleted: optional(
      count,
      "If it is absent or null, the mirror counts `PAID` and `RECOVERED` renewals itself.",
    ),
    churnType: optional(oneOf(CHURN_TYPES), "If it is absent, `sds` decides."),
    revision: optional(
      Type.String({ pattern: "^[0-9]{1,40}$", must: "must be a decimal number in a string" }),
      "decimal number in a string, up to 40 digits. A record with a lower revision than the stored one is ignored.",
    ),
  },
);

const Order = record(
  "order",
  {
    title: "OrderRecord",
    description:
      "The state of an order. An order is identified by its contract, source and cycle number. A record with the " +
      "same three is about the same order.",
  },
  {
    subscription: described(
      gid("SubscriptionContract"),
      "gid of a `SubscriptionContract` that the mirror has; otherwise the order is refused",
    ),
    source: oneOf(ORDER_SOURCES),
    cycleNumber: described(count, "0 for a checkout, 1 or more for a renewal"),
    shopifyId: nullable(gid("Order")),
    status: oneOf(ORDER_STATUSES),
    lines,
    subtotalCents: cents,
    discountCents: cents,
    creditsCents: described(cents, "Subtotal minus discount minus credits must not be below zero."),
    billedAt: described(date, FIRST_COUNTS),
    attemptCount: optional(count, "number of attempts so far"),
    reason: optional(text, "why the last attempt was declined"),
    nextRetryAt: optional(date, "date of the next attempt"),
    retriesExhausted: optional(flag, "true if no attempt follows"),
  },
);

const eventId = Type.String({
  format: TEXT_FORMAT,
  minLength: 1,
  must: `must be a well-formed string of 1 to ${MAX_STRING} characters, without U+0000`,
});

export const Reward = record(
  "reward",
  {
    title: "RewardRecord",
    description:
      "A reward that was earned. Any other field, with a name in snake_case, is passed on in the webhook as it is.",
    additionalProperties: Type.Unknown(),
  },
  {
    id: described(eventId, `${OWN_ID} A second reward with the same id is ignored.`),
    source: oneOf(REWARD_SOURCES),
    customer: described(gid("Customer"), NEW_CUSTOMER),
  },
);

const CancelFlow = record(
  "cancel_flow",
  { title: "CancelFlowRecord", description: "The end of a cancellation flow, whether the offer was accepted or not." },
  {
    id: described(eventId, `${OWN_ID} A second one with the same id is ignored.`),
    subscription: described(gid("SubscriptionContract"), "gid of a `SubscriptionContract` that the mirror has"),
    reason_id: nullable(text),
    offer_type: nullable(text),
    accepted: flag,
    saved: flag,
  },
);

const CustomField = record(
  "custom_field",
  {
    title: "CustomFieldRecord",
    description: "The value of a custom field of a subscription. The shop must have defined the field.",
  },
  {
    subscription: described(gid("SubscriptionContract"), "gid of a `SubscriptionContract` that the mirror has"),
    key: described(text, "the key of a field that is not archived"),
    value: Type.Union([text, Type.Number(), flag, Type.Null()], {
      must: `must be a string ${TEXT_RULE}, a number, true, false or null`,
      description: "a value of the field's type; null clears the value",
    }),
    by: described(oneOf(["merchant", "subscriber"]), "A subscriber may only change fields that subscribers may edit."),
  },
);

/** The schema of each type of record. `must` in a schema is the text of the refusal. */
export const RECORD_SCHEMAS = {
  customer: Customer,
  subscription: Subscription,
  order: Order,
  reward: Reward,
  cancel_flow: CancelFlow,
  custom_field: CustomField,
};
export type RecordType = keyof typeof RECORD_SCHEMAS;
export const RECORD_TYPES = Object.keys(RECORD_SCHEMAS) as RecordType[];

export type SubscriptionFields = Static<typeof Subscription>;

/**
 * Only the platform adapter sets the two times (epoch milliseconds), because the platform's data can arrive in any
 * order. `asOf` is the time of the data. `consentAsOf` is the time of the consent; by default it is `asOf`.
 */
export type CustomerRecord = Static<typeof Customer> & { asOf?: number; consentAsOf?: number };
/** After parsing, the interval is never YEAR. */
export type SubscriptionRecord = SubscriptionFields & { interval: "DAY" | "WEEK" | "MONTH" };
export type OrderRecord = Static<typeof Order>;
export type RewardRecord = Static<typeof Reward> & { [field: string]: unknown };
export type CancelFlowRecord = Static<typeof CancelFlow>;
export type CustomFieldRecord = Static<typeof CustomField>;
/** A record from outside (docs/records.md), checked and normalized: dates to the millisecond, YEAR as MONTH × 12. */
export type IncomingRecord =
  | CustomerRecord
  | SubscriptionRecord
  | OrderRecord
  | RewardRecord
  | CancelFlowRecord
  | CustomFieldRecord;
