// `bun scripts/build.ts --client-types` writes this file from the schemas in src/domain. Do not edit it.

/** What each topic's event has as `data`. */
export interface WebhookData {
  "subscription.created": {
    /** Gid of the contract: `shopifyId` of a subscription in the API. */
    contract_id: string;
    /** Internal id of the customer: `id` of a customer in the API. */
    customer_id: string;
    /** Status of the contract. */
    status: "ACTIVE" | "PAUSED" | "CANCELLED" | "PAYMENT_FAILED" | "EXPIRED";
    /** `DAY`, `WEEK` or `MONTH`. */
    interval: "DAY" | "WEEK" | "MONTH";
    /** Intervals from one billing to the next. */
    interval_count: number;
    /** Null for `CANCELLED` and `EXPIRED`. */
    next_billing_date: string | null;
    /** Gid of the selling plan. */
    selling_plan_id: string | null;
  };
  "subscription.updated": {
    /** Gid of the contract: `shopifyId` of a subscription in the API. */
    contract_id: string;
    /** Internal id of the customer: `id` of a customer in the API. */
    customer_id: string;
    /** Status of the contract. */
    status: "ACTIVE" | "PAUSED" | "CANCELLED" | "PAYMENT_FAILED" | "EXPIRED";
    /** Null for `CANCELLED` and `EXPIRED`. */
    next_billing_date: string | null;
  };
  "subscription.cancelled": {
    /** Gid of the contract: `shopifyId` of a subscription in the API. */
    contract_id: string;
    /** Internal id of the customer: `id` of a customer in the API. */
    customer_id: string;
    /** `voluntary` or `involuntary`. */
    churn_type: "voluntary" | "involuntary";
  };
  "order.charged": {
    /** Gid of the order. Null while there is no platform order, as for a declined attempt. */
    order_id: string | null;
    /** Gid of the contract: `shopifyId` of a subscription in the API. */
    contract_id: string;
    /** Internal id of the customer: `id` of a customer in the API. */
    customer_id: string;
    /** Which renewal of the contract. 0 for a checkout. */
    cycle_number: number;
    /** In minor units. */
    total_cents: number;
    /** Attempts for this order, this one included. */
    attempt_count: number;
  };
  "order.failed": {
    /** Gid of the order. Null while there is no platform order, as for a declined attempt. */
    order_id: string | null;
    /** Gid of the contract: `shopifyId` of a subscription in the API. */
    contract_id: string;
    /** Internal id of the customer: `id` of a customer in the API. */
    customer_id: string;
    /** Which renewal of the contract. 0 for a checkout. */
    cycle_number: number;
    /** In minor units. */
    total_cents: number;
    /** Attempts for this order, this one included. */
    attempt_count: number;
    /** Why the attempt was declined. */
    reason: string | null;
    /** Time of the next attempt. Null if none is planned. */
    next_retry_at: string | null;
    /** `true` if no further attempt follows. */
    retries_exhausted: boolean;
  };
  "order.recovered": WebhookData["order.charged"];
  /** Also has the reward's own fields, as they were recorded. */
  "loyalty.reward_earned": {
    /** Tells which further fields the event has: each source has its own. */
    source: "loyalty" | "streak" | "referral";
    /** Internal id of the customer: `id` of a customer in the API. */
    customer_id: string;
    [field: string]: unknown;
  };
  "cancel_flow.completed": {
    /** Gid of the contract: `shopifyId` of a subscription in the API. */
    contract_id: string;
    /** Internal id of the customer: `id` of a customer in the API. */
    customer_id: string;
    /** Why the subscriber wanted to cancel. */
    reason_id: string | null;
    /** What was offered instead. */
    offer_type: string | null;
    /** Whether the offer was accepted. */
    accepted: boolean;
    /** Whether the subscription goes on. */
    saved: boolean;
  };
}

export type WebhookTopic = keyof WebhookData;

/** What every event has. */
export interface WebhookEnvelope {
  /** Id of the delivery. Retries keep it: skip an id that you have processed. */
  id: string;
  /** When the event was queued. */
  created_at: string;
  /** The shop's domain. */
  shop: string;
}

/** A webhook of ours. Look at `topic` first: it tells which data there is. */
export type WebhookEvent = {
  [T in WebhookTopic]: WebhookEnvelope & { topic: T; data: WebhookData[T] };
}[WebhookTopic];
