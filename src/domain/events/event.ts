import { didYouMean } from "../../lib/similar.ts";
import { invalid } from "../error.ts";
import type { CancelFlowRecord, RewardRecord } from "../records/record-schemas.ts";
import type { OrderRow, SubscriptionRow } from "../rows.ts";
import type { EventData } from "./event-schemas.ts";
import type { Trigger } from "./trigger.ts";

/** All webhook topics, each with its description on the settings page (docs/webhooks.md, "Topics"). */
export const TOPICS = {
  "subscription.created": "A new subscription contract starts.",
  "subscription.updated": "A contract's status or next billing date changes.",
  "subscription.cancelled": "A contract is cancelled.",
  "order.charged": "A renewal or checkout charge succeeds.",
  "order.failed": "A billing attempt is declined.",
  "order.recovered": "A previously failed order is charged successfully.",
  "loyalty.reward_earned": "A loyalty, streak or referral reward is earned.",
  "cancel_flow.completed": "A subscriber finishes the cancellation flow.",
} as const satisfies Record<keyof EventData, string>;
export type Topic = keyof typeof TOPICS;
export const TOPIC_NAMES = Object.keys(TOPICS) as Topic[];

/** Reads topic names. @returns the topics in the order of `TOPICS` @throws SdsError `invalid` */
export function parseTopics(names: readonly string[]): Topic[] {
  const unknown = names.find((name) => !TOPIC_NAMES.some((topic) => topic === name));
  if (unknown !== undefined)
    throw invalid(
      `"${unknown}" is not a topic${didYouMean(unknown, TOPIC_NAMES)}: choose from ${TOPIC_NAMES.join(", ")}`,
    );
  return TOPIC_NAMES.filter((topic) => names.includes(topic));
}

/** An event of the shop. `data` has its keys in the documented order (docs/webhooks.md, "Topics"). */
export interface Event {
  topic: Topic;
  data: Record<string, unknown>;
  trigger?: Trigger;
  /** Time of the event at its source, epoch milliseconds. If `at` is not set, the event happens now. */
  at?: number;
}

/** An event with the data that its topic promises. */
interface EventOf<T extends Topic> extends Event {
  topic: T;
  data: EventData[T];
}
export type TopicEvent = { [T in Topic]: EventOf<T> }[Topic];

/**
 * Returns the events of a contract that is new or cancelled, or whose status or next billing date changed.
 * @param customer gid of the contract's customer
 */
export function subscriptionEvents(
  before: SubscriptionRow | undefined,
  after: SubscriptionRow,
  customer: string,
): TopicEvent[] {
  const {
    shopifyId: contract_id,
    customerId: customer_id,
    status,
    nextBillingDate: next_billing_date,
    ...rest
  } = after.resource;
  if (before === undefined) {
    const { interval, intervalCount: interval_count, sellingPlanId: selling_plan_id } = rest;
    const data = { contract_id, customer_id, status, interval, interval_count, next_billing_date, selling_plan_id };
    const fields = { "Contract ID": contract_id, Interval: intervalOf(after) };
    const trigger: Trigger = { handle: "subscription-created", customer, fields };
    return [{ topic: "subscription.created", data, trigger, at: Date.parse(after.resource.startedAt) }];
  }
  const events: TopicEvent[] = [];
  const { status: statusBefore, nextBillingDate: dateBefore } = before.resource;
  if (status !== statusBefore || next_billing_date !== dateBefore) {
    events.push({ topic: "subscription.updated", data: { contract_id, customer_id, status, next_billing_date } });
  }
  if (status === "CANCELLED" && statusBefore !== "CANCELLED") {
    const churn_type = churnType(before, after);
    const fields = { "Contract ID": contract_id, Interval: intervalOf(after), "Churn type": churn_type };
    const trigger: Trigger = { handle: "subscription-cancelled", customer, fields };
    events.push({ topic: "subscription.cancelled", data: { contract_id, customer_id, churn_type }, trigger });
  }
  return events;
}

function churnType(before: SubscriptionRow, after: SubscriptionRow): "voluntary" | "involuntary" {
  if (after.churnType !== null) return after.churnType;
  const { lastOrderStatus } = after;
  const unpaid =
    before.resource.status === "PAYMENT_FAILED" || lastOrderStatus === "FAILED" || lastOrderStatus === "UNCOLLECTIBLE";
  return unpaid ? "involuntary" : "voluntary";
}

/** Returns an interval like "1 month" or "2 weeks", for people who build a workflow. */
function intervalOf({ resource: { interval, intervalCount } }: SubscriptionRow): string {
  return `${intervalCount} ${interval.toLowerCase()}${intervalCount === 1 ? "" : "s"}`;
}

/**
 * Returns the events of an order.
 * @param outcome of the new attempt; undefined without a new attempt
 * @param customer gid of the contract's customer
 */
export function orderEvents(
  contract: SubscriptionRow,
  outcome: "charged" | "declined" | undefined,
  after: OrderRow,
  customer: string,
): TopicEvent[] {
  if (outcome === undefined) return [];
  const contract_id = contract.resource.shopifyId;
  const {
    shopifyId: order_id,
    customerId: customer_id,
    cycleNumber: cycle_number,
    totalCents: total_cents,
    status,
  } = after.resource;
  const data = { order_id, contract_id, customer_id, cycle_number, total_cents, attempt_count: after.attemptCount };
  if (outcome === "charged") return [{ topic: after.declined ? "order.recovered" : "order.charged", data }];
  const retries_exhausted = after.retriesExhausted ?? status === "UNCOLLECTIBLE";
  const event: EventOf<"order.failed"> = {
    topic: "order.failed",
    data: { ...data, reason: after.reason, next_retry_at: after.nextRetryAt, retries_exhausted },
  };
  // Only a renewal starts the workflow, because a declined checkout starts no subscription.
  if (after.resource.source !== "recurring") return [event];
  const fields = {
    "Contract ID": contract_id,
    Interval: intervalOf(contract),
    "Decline reason": after.reason ?? "unknown",
    "Attempt count": after.attemptCount,
  };
  return [{ ...event, trigger: { handle: "billing-attempt-failed", customer, fields } }];
}

/**
 * Returns the event of a reward, with the sender's own fields. If the reward is for a streak and `milestone` is a
 * number, the event starts a workflow.
 */
export function rewardEvent(
  customer_id: string,
  { type: _type, id: _id, customer, source, ...fields }: RewardRecord,
): TopicEvent {
  const event: TopicEvent = { topic: "loyalty.reward_earned", data: { source, customer_id, ...fields } };
  const milestone = fields["milestone"];
  if (source !== "streak" || typeof milestone !== "number") return event;
  return { ...event, trigger: { handle: "streak-milestone-reached", customer, fields: { Milestone: milestone } } };
}

/** Returns the event of a finished cancellation flow. */
export function cancelFlowEvent(customer_id: string, record: CancelFlowRecord): TopicEvent {
  const { subscription: contract_id, reason_id, offer_type, accepted, saved } = record;
  return { topic: "cancel_flow.completed", data: { contract_id, customer_id, reason_id, offer_type, accepted, saved } };
}
