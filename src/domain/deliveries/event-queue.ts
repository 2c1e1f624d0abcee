import type { Event, Topic } from "../events/event.ts";
import { type TriggerHandle, triggerBody } from "../events/trigger.ts";
import { hasAccess, type Plan, type ShopRef } from "../shop.ts";
import { type DeliveryKind, envelope } from "./delivery.ts";

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
  /** Whether the same commit redacts a person whom the body names. Then no answer is kept. */
  isRedacted?: boolean;
}

/**
 * Returns the deliveries to queue for events. A shop with an endpoint gets webhooks for the topics that it chose. A
 * connected shop gets the triggers that it switched on. A shop whose plan has no access gets no delivery.
 * @param now epoch milliseconds
 * @param newId returns a new delivery id
 */
export function deliveriesOf(
  events: readonly Event[],
  shop: ShopRef,
  targets: EventTargets,
  now: number,
  newId: () => string,
): NewDelivery[] {
  if (!hasAccess(targets.plan)) return [];
  return events.flatMap((event) => {
    const deliveries: NewDelivery[] = [];
    const { secretVersion } = targets;
    if (targets.url !== null && secretVersion !== null && targets.topics.includes(event.topic)) {
      deliveries.push(webhookDelivery(newId(), event, shop, secretVersion, now));
    }
    const { trigger } = event;
    if (trigger !== undefined && targets.isConnected && targets.triggers.includes(trigger.handle)) {
      // A trigger has no signature: it is sent with the shop's access token.
      deliveries.push({
        id: newId(),
        kind: "trigger",
        topic: trigger.handle,
        isTest: false,
        body: triggerBody(trigger),
        secretVersion: 0,
      });
    }
    return deliveries;
  });
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
