import type { Event, Topic } from "./event.ts";
import type { EventData } from "./event-schemas.ts";

const contract = { contract_id: "gid://shopify/SubscriptionContract/1", customer_id: "cus_aaaaaaaaaaaaaaaaaaaaaaaa" };
const order = { order_id: "gid://shopify/Order/1", ...contract, cycle_number: 3, total_cents: 1990, attempt_count: 1 };
const reward = { source: "streak" as const, customer_id: contract.customer_id, milestone: 5, cycles: 5 };
const date = "2026-01-31T09:30:00.000Z";

/** The data of each topic's test event, with all fields of the topic. The contract in the data does not exist. */
const SAMPLES: EventData = {
  "subscription.created": {
    ...contract,
    status: "ACTIVE",
    interval: "MONTH",
    interval_count: 1,
    next_billing_date: date,
    selling_plan_id: "gid://shopify/SellingPlan/1",
  },
  "subscription.updated": { ...contract, status: "PAUSED", next_billing_date: date },
  "subscription.cancelled": { ...contract, churn_type: "voluntary" },
  "order.charged": order,
  "order.failed": {
    ...order,
    order_id: null,
    reason: "insufficient_funds",
    next_retry_at: date,
    retries_exhausted: false,
  },
  "order.recovered": { ...order, attempt_count: 2 },
  "loyalty.reward_earned": reward,
  "cancel_flow.completed": {
    ...contract,
    reason_id: "too_expensive",
    offer_type: "discount",
    accepted: true,
    saved: true,
  },
};

export function sampleEvent(topic: Topic): Event {
  return { topic, data: SAMPLES[topic] };
}
