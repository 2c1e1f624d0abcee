import type { Event, Topic } from "../events/event.ts";
import { type Trigger, type TriggerHandle, triggerBody } from "../events/trigger.ts";
import { hasAccess, type Plan, type ShopRef } from "../shop.ts";
import { type DeliveryKind, envelope } from "./delivery.ts";
import { numberOf } from "./subject.ts";

/** A shop's settings that decide which events are queued. */
export interface EventTargets {
  plan: Plan;
  /** null without an endpoint. */
  url: string | null;
  topics: readonly Topic[];
  /** Version of the newest signing secret; null without a secret. */
  secretVersion: number | null;
  triggers: readonly TriggerHandle[];
  isConnected: boolean;
}

/** A delivery to queue. Every attempt sends the same body, signed with the same secret. */
export interface NewDelivery {
  id: string;
  kind: DeliveryKind;
  topic: string;
  isTest: boolean;
  body: string;
  secretVersion: number;
  /** Whether the same commit redacts a person whom the body names. Then the endpoint's answers are not stored. */
  isRedacted?: boolean;
}

/** Why no delivery is queued for an event. `quiet`: the commit queues no events, or only newer events. */
export type UnsentReason = "plan_without_access" | "no_endpoint" | "topic_not_chosen" | "quiet";

const NO_CYCLE = -1;

/** An event for which no delivery is queued. */
export interface UnsentEvent {
  /** See `SubjectSearch.subject`. */
  subject: string;
  /** The topic, or the handle of a workflow trigger. */
  topic: string;
  /** Number of the renewal that the event is about: 0 for a checkout, -1 for an event without an order. */
  cycle: number;
  reason: UnsentReason;
}

interface QueueOptions {
  /** Epoch milliseconds. */
  now: number;
  /** See `Submission.eventsSince`. */
  since: number;
  /** Returns a new delivery id. */
  newId: () => string;
}

export interface QueuedEvents {
  deliveries: NewDelivery[];
  unsent: UnsentEvent[];
}

/**
 * Returns the delivery to queue for each webhook and workflow trigger of the events, or why none is queued. A shop with
 * an endpoint gets webhooks for the topics that it chose. A connected shop gets the triggers that it switched on. A
 * shop whose plan has no access gets no delivery.
 */
export function queueEvents(
  events: readonly Event[],
  shop: ShopRef,
  targets: EventTargets,
  { now, since, newId }: QueueOptions,
): QueuedEvents {
  const queued: QueuedEvents = { deliveries: [], unsent: [] };
  for (const event of events) {
    if (since === Number.POSITIVE_INFINITY || (event.at ?? now) < since) {
      queued.unsent.push(unsentEvent(event, "quiet"));
      continue;
    }
    const secretVersion = webhookSecret(event.topic, targets);
    if (typeof secretVersion === "number")
      queued.deliveries.push(webhookDelivery(newId(), event, shop, secretVersion, now));
    else queued.unsent.push(unsentEvent(event, secretVersion));
    const { trigger } = event;
    // A shop without triggers does not use workflows, so its events are not noted as unsent triggers.
    if (trigger === undefined || targets.triggers.length === 0 || !targets.isConnected) continue;
    if (!hasAccess(targets.plan)) continue;
    if (targets.triggers.includes(trigger.handle)) queued.deliveries.push(triggerDelivery(newId(), trigger));
    else queued.unsent.push({ ...unsentEvent(event, "topic_not_chosen"), topic: trigger.handle });
  }
  return queued;
}

/** Returns the version of the secret that signs a topic's webhooks, or why the shop gets no webhook. */
function webhookSecret(topic: Topic, { plan, url, secretVersion, topics }: EventTargets): number | UnsentReason {
  if (!hasAccess(plan)) return "plan_without_access";
  if (url === null || secretVersion === null) return "no_endpoint";
  return topics.includes(topic) ? secretVersion : "topic_not_chosen";
}

/** Describes an event for which no webhook is queued. */
function unsentEvent({ topic, data }: Event, reason: UnsentReason): UnsentEvent {
  const { contract_id, customer_id, cycle_number } = data as { [field: string]: unknown };
  // For a reward, only `customer_id` is read, because the sender can add fields with the other two names.
  if (topic === "loyalty.reward_earned") return { subject: String(customer_id), topic, cycle: NO_CYCLE, reason };
  const cycle = typeof cycle_number === "number" ? cycle_number : NO_CYCLE;
  return { subject: numberOf(String(contract_id)), topic, cycle, reason };
}

/** Makes a workflow trigger. It has no signature: it is sent with the shop's access token. */
function triggerDelivery(id: string, trigger: Trigger): NewDelivery {
  return { id, kind: "trigger", topic: trigger.handle, isTest: false, body: triggerBody(trigger), secretVersion: 0 };
}

/** Makes the webhook of one event, even if the shop did not choose its topic. @param now epoch milliseconds */
export function webhookDelivery(
  id: string,
  event: Event,
  shop: ShopRef,
  secretVersion: number,
  now: number,
  isTest = false,
): NewDelivery {
  return {
    id,
    kind: "webhook",
    topic: event.topic,
    isTest,
    body: envelope(id, event, now, shop.domain),
    secretVersion,
  };
}
