import { type Static, type TProperties, Type } from "@sinclair/typebox";
import { CHURN_TYPES, REWARD_SOURCES } from "../records/record-schemas.ts";
import {
  countField,
  dateField,
  gidField,
  INTERVALS,
  idField,
  oneOf,
  orNull,
  SUBSCRIPTION_STATUSES,
} from "../resources.ts";

const contract_id = gidField("SubscriptionContract", "Gid of the contract: `shopifyId` of a subscription in the API.");
const customer_id = idField("cus_", "Internal id of the customer: `id` of a customer in the API.");
const status = oneOf(SUBSCRIPTION_STATUSES, "Status of the contract.");
const next_billing_date = orNull(dateField("Null for `CANCELLED` and `EXPIRED`."));

const payment = {
  order_id: orNull(
    gidField("Order", "Gid of the order. Null while there is no platform order, as for a declined attempt."),
  ),
  contract_id,
  customer_id,
  cycle_number: countField("Which renewal of the contract. 0 for a checkout."),
  total_cents: Type.Integer({ description: "In minor units." }),
  attempt_count: countField("Attempts for this order, this one included."),
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
    selling_plan_id: orNull(gidField("SellingPlan", "Gid of the selling plan.")),
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
    next_retry_at: orNull(dateField("Time of the next attempt. Null if none is planned.")),
    retries_exhausted: Type.Boolean({ description: "`true` if no further attempt follows." }),
  }),
  "order.recovered": data(payment),
  "loyalty.reward_earned": Type.Object(
    {
      source: oneOf(REWARD_SOURCES, "Tells which further fields the event has: each source has its own."),
      customer_id,
    },
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
  id: idField("whd_", "Id of the delivery. Retries keep it: skip an id that you have processed."),
  topic: Type.String({ description: "The same as in the header X-Service-Topic." }),
  created_at: dateField("When the event was queued."),
  shop: Type.String({ description: "The shop's domain." }),
  data: Type.Unknown({ description: "The fields of the topic." }),
});
export type Envelope = Static<typeof ENVELOPE>;
