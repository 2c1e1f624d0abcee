import { expect, test } from "bun:test";
import type { DeliveryKind } from "../../../src/domain/deliveries/delivery.ts";
import { type EventTargets, queueEvents, webhookDelivery } from "../../../src/domain/deliveries/event-queue.ts";
import type { Event } from "../../../src/domain/events/event.ts";
import { START } from "../../support/app.ts";
import { gid } from "../../support/records.ts";

const shop = { id: 1, domain: "alpha.myshopify.com" };
const event: Event = {
  topic: "subscription.created",
  data: { status: "ACTIVE" },
  trigger: {
    handle: "subscription-created",
    customer: gid.customer(1),
    fields: { "Contract ID": gid.contract(1), Interval: "1 month" },
  },
};
const ALL: EventTargets = {
  plan: "pro",
  url: "https://hooks.example.com",
  topics: ["subscription.created"],
  secretVersion: 2,
  triggers: ["subscription-created"],
  isConnected: true,
};
const queueAs = (id: string) => ({ now: START, since: 0, newId: () => id });
const kinds = (targets: Partial<EventTargets>) =>
  queueEvents([event], shop, { ...ALL, ...targets }, queueAs("whd_1")).deliveries.map(({ kind }) => kind);

test.each<[string, Partial<EventTargets>, DeliveryKind[]]>([
  ["a shop with all targets", {}, ["webhook", "trigger"]],
  ["the free plan with the add-on", { plan: "free+addon" }, ["webhook", "trigger"]],
  ["a plan without access", { plan: "free" }, []],
  ["a shop without an endpoint", { url: null }, ["trigger"]],
  ["a shop without a signing secret", { secretVersion: null }, ["trigger"]],
  ["a topic that is not chosen", { topics: ["subscription.updated"] }, ["trigger"]],
  ["a shop that is not connected to the platform", { isConnected: false }, ["webhook"]],
  ["a trigger that is off", { triggers: ["subscription-cancelled"] }, ["webhook"]],
])("%s: the right deliveries are queued", (_name, targets, expected) => {
  expect(kinds(targets)).toEqual(expected);
});

test("a queued webhook has its final body and the version of its secret", () => {
  expect(queueEvents([event], shop, { ...ALL, triggers: [] }, queueAs("whd_7")).deliveries).toEqual([
    {
      id: "whd_7",
      kind: "webhook",
      topic: "subscription.created",
      isTest: false,
      body: '{"id":"whd_7","topic":"subscription.created","created_at":"2026-03-01T12:00:00.000Z","shop":"alpha.myshopify.com","data":{"status":"ACTIVE"}}',
      secretVersion: 2,
    },
  ]);
  expect(webhookDelivery("whd_8", event, shop, 3, START, true)).toMatchObject({ isTest: true, secretVersion: 3 });
});

test("a trigger has no signature, and the customer's number in its payload", () => {
  expect(queueEvents([event], shop, { ...ALL, topics: [] }, queueAs("whd_9")).deliveries).toMatchObject([
    { kind: "trigger", topic: "subscription-created", secretVersion: 0, isTest: false },
  ]);
});
