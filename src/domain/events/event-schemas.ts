import { type Static, type TProperties, Type } from "@sinclair/typebox";
import { CHURN_TYPES, REWARD_SOURCES } from "../records/record-schemas.ts";
import { DATE_FORMAT, gidPattern, INTERVALS, idPattern, oneOf, orNull, SUBSCRIPTION_STATUSES } from "../resources.ts";

const date = (description: string) => Type.String({ format: DATE_FORMAT, description });

const contract_id = Type.String({
  pattern: gidPattern("SubscriptionContract"),
  description: "Gid of the contract: `shopifyId` of a subscription in the API.",
});
const customer_id = Type.String({
  pattern: idPattern("cus_"),
  description: "Internal id of the customer: `id` of a customer in the API.",
});
const status = oneOf(SUBSCRIPTION_STATUSES, "Status of the contract.");
const next_billing_date = orNull(date("Null for `CANCELLED` and `EXPIRED`."));

const payment = {
  order_id: orNull(
    Type.String({
      pattern: gidPattern("Order"),
      description: "Gid of the order. Null while there is no platform order, as for a declined attempt.",
    }),
  ),
  contract_id,
  customer_id,
  cycle_number: Type.Integer({ minimum: 0, description: "Which renewal of the contract. 0 for a checkout." }),
  total_cents: Type.Integer({ description: "In minor units." }),
  attempt_count: Type.Integer({ minimum: 0, description: "Attempts for this order, this one included." }),
};

/** The schema of `data` for each topic, with the keys in the order of the body (docs/webhooks.md, "Topics"). */
export const EVENT_DATA = {
  "subscription.created": data({
    contract_id,
    customer_id,
    status,
    interval: oneOf(INTERVALS, "`DAY`, `WEEK` or `MONTH`."),
    interval_count: Type.Integer({ minimum: 1, description: "Intervals from one billing to the next." }),
    next_billing_date,
    selling_plan_id: orNull(
      Type.String({ pattern: gidPattern("SellingPlan"), description: "Gid of the selling plan." }),
    ),
  }),
  "subscription.updated": data({ contract_id, customer_id, status, next_billing_date }),
  "subscription.cancelled": data({
    contract_id,
    customer_id,
    churn_type: oneOf(CHURN_TYPES, "`voluntary` or `involuntary`."),
  }),
  "order.charged": data(payment),
  "order.failed": data({
    ...payment,
    reason: orNull(Type.String({ description: "Why the attempt was declined." })),
    next_retry_at: orNull(date("When the next attempt is.")),
    retries_exhausted: Type.Boolean({ description: "True: no attempt follows." }),
  }),
  "order.recovered": data(payment),
  "loyalty.reward_earned": Type.Object(
    { source: oneOf(REWARD_SOURCES, "Look at it first: each source has fields of its own."), customer_id },
    { additionalProperties: Type.Unknown(), description: "Also has the reward's own fields, as they were recorded." },
  ),
  "cancel_flow.completed": data({
    contract_id,
    customer_id,
    reason_id: orNull(Type.String({ description: "Why the subscriber wanted to cancel." })),
    offer_type: orNull(Type.String({ description: "What was offered instead." })),
    accepted: Type.Boolean({ description: "Whether the offer was accepted." }),
    saved: Type.Boolean({ description: "Whether the subscription goes on." }),
  }),
};
export type EventData = { [T in keyof typeof EVENT_DATA]: Static<(typeof EVENT_DATA)[T]> };

function data<P extends TProperties>(fields: P) {
  return Type.Object(fields);
}

/** The body of a webhook, with its keys in their order (docs/webhooks.md, "Body"). */
export const ENVELOPE = Type.Object({
  id: Type.String({
    pattern: idPattern("whd_"),
    description: "Id of the delivery. Retries have the same one: skip those that you know.",
  }),
  topic: Type.String({ description: "The same as in the header X-Service-Topic." }),
  created_at: date("When the event was queued."),
  shop: Type.String({ description: "The shop's domain." }),
  data: Type.Unknown(),
});
export type Envelope = Static<typeof ENVELOPE>;
