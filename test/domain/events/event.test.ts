import { describe, expect, test } from "bun:test";
import { TOPIC_NAMES } from "../../../src/domain/events/event.ts";
import { sampleEvent } from "../../../src/domain/events/sample.ts";
import { customerId } from "../../../src/domain/ids.ts";
import type { MirrorRecord } from "../../../src/domain/records/platform-records.ts";
import { MapMirror } from "../../support/map-mirror.ts";
import { cancelFlow, customer, gid, order, reward, subscription } from "../../support/records.ts";

const contract_id = gid.contract(1);
const customer_id = customerId("alpha.myshopify.com", gid.customer(1));

/** The events of the last of some records. */
function eventsOf(...records: MirrorRecord[]) {
  const mirror = new MapMirror();
  return records.map((record) => mirror.apply(record).events).at(-1) ?? [];
}

function topicsOf(...records: MirrorRecord[]): string[] {
  return eventsOf(...records).map(({ topic }) => topic);
}

/** The fields of docs/webhooks.md, "Topics", in their order. */
const FIELDS = {
  "subscription.created": [
    "contract_id",
    "customer_id",
    "status",
    "interval",
    "interval_count",
    "next_billing_date",
    "selling_plan_id",
  ],
  "subscription.updated": ["contract_id", "customer_id", "status", "next_billing_date"],
  "subscription.cancelled": ["contract_id", "customer_id", "churn_type"],
  "order.charged": ["order_id", "contract_id", "customer_id", "cycle_number", "total_cents", "attempt_count"],
  "order.failed": [
    "order_id",
    "contract_id",
    "customer_id",
    "cycle_number",
    "total_cents",
    "attempt_count",
    "reason",
    "next_retry_at",
    "retries_exhausted",
  ],
  "order.recovered": ["order_id", "contract_id", "customer_id", "cycle_number", "total_cents", "attempt_count"],
  "loyalty.reward_earned": ["source", "customer_id", "milestone"],
  "cancel_flow.completed": ["contract_id", "customer_id", "reason_id", "offer_type", "accepted", "saved"],
};

test.each<[keyof typeof FIELDS, MirrorRecord[], Record<string, unknown>]>([
  [
    "subscription.created",
    [subscription(1)],
    {
      contract_id,
      customer_id,
      status: "ACTIVE",
      interval: "MONTH",
      interval_count: 1,
      next_billing_date: "2026-02-01T00:00:00.000Z",
      selling_plan_id: "gid://shopify/SellingPlan/3",
    },
  ],
  [
    "subscription.updated",
    [subscription(1), subscription(1, { status: "PAUSED" })],
    { contract_id, customer_id, status: "PAUSED", next_billing_date: "2026-02-01T00:00:00.000Z" },
  ],
  [
    "subscription.cancelled",
    [subscription(1), subscription(1, { status: "CANCELLED" })],
    { contract_id, customer_id, churn_type: "voluntary" },
  ],
  [
    "order.charged",
    [subscription(1), order(1, 3)],
    { order_id: gid.order(1003), contract_id, customer_id, cycle_number: 3, total_cents: 1900, attempt_count: 1 },
  ],
  [
    "order.failed",
    [
      subscription(1),
      order(1, 3, {
        shopifyId: null,
        status: "FAILED",
        attemptCount: 2,
        reason: "expired_card",
        nextRetryAt: "2026-02-04T00:00:00.000Z",
      }),
    ],
    {
      order_id: null,
      contract_id,
      customer_id,
      cycle_number: 3,
      total_cents: 1900,
      attempt_count: 2,
      reason: "expired_card",
      next_retry_at: "2026-02-04T00:00:00.000Z",
      retries_exhausted: false,
    },
  ],
  [
    "order.recovered",
    [subscription(1), order(1, 3, { shopifyId: null, status: "FAILED" }), order(1, 3, { status: "RECOVERED" })],
    { order_id: gid.order(1003), contract_id, customer_id, cycle_number: 3, total_cents: 1900, attempt_count: 2 },
  ],
  ["loyalty.reward_earned", [customer(1), reward("r")], { source: "streak", customer_id, milestone: 5 }],
  [
    "cancel_flow.completed",
    [subscription(1), cancelFlow("c")],
    { contract_id, customer_id, reason_id: "price", offer_type: null, accepted: false, saved: false },
  ],
])("%s has its fields in their order", (topic, records, data) => {
  const event = eventsOf(...records).find((each) => each.topic === topic);
  expect(event?.data).toEqual(data);
  expect(Object.keys(event?.data ?? {})).toEqual(FIELDS[topic]);
});

test("samples have the fields of real events", () => {
  expect(TOPIC_NAMES).toEqual(Object.keys(FIELDS) as typeof TOPIC_NAMES);
  for (const topic of TOPIC_NAMES)
    expect(Object.keys(sampleEvent(topic).data).slice(0, 3)).toEqual(FIELDS[topic].slice(0, 3));
});

test("a declined renewal without a reason starts its workflow with the reason `unknown`", () => {
  const [event] = eventsOf(subscription(1), order(1, 1, { status: "FAILED", attemptCount: 1 }));
  expect(event?.data["reason"]).toBeNull();
  expect(event?.trigger?.fields).toEqual({
    "Contract ID": contract_id,
    Interval: "1 month",
    "Decline reason": "unknown",
    "Attempt count": 1,
  });
});

describe("a contract", () => {
  test.each<[string, MirrorRecord[], string[]]>([
    ["seen first", [subscription(1)], ["subscription.created"]],
    ["seen first when it is over", [subscription(1, { status: "CANCELLED" })], ["subscription.created"]],
    ["that says the same again", [subscription(1), subscription(1)], []],
    ["with other lines", [subscription(1), subscription(1, { lines: [] })], []],
    [
      "with another next billing date",
      [subscription(1), subscription(1, { nextBillingDate: "2026-03-01T00:00:00.000Z" })],
      ["subscription.updated"],
    ],
    [
      "that is cancelled",
      [subscription(1), subscription(1, { status: "CANCELLED" })],
      ["subscription.updated", "subscription.cancelled"],
    ],
    [
      "that stays cancelled",
      [subscription(1, { status: "CANCELLED" }), subscription(1, { status: "CANCELLED", lines: [] })],
      [],
    ],
    [
      "of an older revision",
      [subscription(1, { revision: "9" }), subscription(1, { revision: "8", status: "PAUSED" })],
      [],
    ],
    ["whose renewals are counted", [subscription(1), order(1, 1), customer(1)], []],
  ])("%s", (_name, records, topics) => {
    expect(topicsOf(...records)).toEqual(topics);
  });

  const cancelled = subscription(1, { status: "CANCELLED" });
  test.each<[string, MirrorRecord[], string]>([
    ["by itself", [subscription(1), cancelled], "voluntary"],
    ["as the source says", [subscription(1), { ...cancelled, churnType: "involuntary" }], "involuntary"],
    [
      "as the source says, though it was unpaid",
      [subscription(1, { status: "PAYMENT_FAILED" }), { ...cancelled, churnType: "voluntary" }],
      "voluntary",
    ],
    ["after PAYMENT_FAILED", [subscription(1, { status: "PAYMENT_FAILED" }), cancelled], "involuntary"],
    ["after a FAILED order", [subscription(1), order(1, 1, { status: "FAILED" }), cancelled], "involuntary"],
    [
      "after an UNCOLLECTIBLE order",
      [subscription(1), order(1, 1, { status: "UNCOLLECTIBLE" }), cancelled],
      "involuntary",
    ],
    [
      "after a FAILED order that was recovered",
      [subscription(1), order(1, 1, { status: "FAILED" }), order(1, 1, { status: "RECOVERED" }), cancelled],
      "voluntary",
    ],
    [
      "after a FAILED order that was not the last",
      [
        subscription(1),
        order(1, 1, { status: "FAILED" }),
        order(1, 2, { billedAt: "2026-03-01T00:00:00.000Z" }),
        cancelled,
      ],
      "voluntary",
    ],
    [
      "a second time, for what was said of the first does not count",
      [subscription(1), { ...cancelled, churnType: "involuntary" }, subscription(1), cancelled],
      "voluntary",
    ],
  ])("cancelled %s", (_name, records, churn_type) => {
    expect(eventsOf(...records).at(-1)).toMatchObject({
      topic: "subscription.cancelled",
      data: { contract_id, customer_id, churn_type },
    });
  });
});

describe("an order", () => {
  const failed = (fields = {}) => order(1, 1, { status: "FAILED", shopifyId: null, ...fields });
  test.each<[string, MirrorRecord[], [string, number][]]>([
    ["paid at once", [order(1, 1)], [["order.charged", 1]]],
    ["of the checkout", [order(1, 0, { source: "checkout" })], [["order.charged", 1]]],
    ["paid, said again", [order(1, 1), order(1, 1)], []],
    ["paid, changed", [order(1, 1), order(1, 1, { lines: [] })], []],
    ["waiting", [order(1, 1, { status: "PENDING", shopifyId: null })], []],
    ["skipped", [order(1, 1, { status: "SKIPPED", shopifyId: null })], []],
    ["waiting, then paid", [order(1, 1, { status: "PENDING" }), order(1, 1)], [["order.charged", 1]]],
    ["declined", [failed()], [["order.failed", 1]]],
    ["declined, said again", [failed(), failed()], []],
    ["declined, as the source counts", [failed({ attemptCount: 4 })], [["order.failed", 4]]],
    [
      "declined again, as the source counts",
      [failed({ attemptCount: 1 }), failed({ attemptCount: 2 })],
      [["order.failed", 2]],
    ],
    [
      "declined, then changed under one count",
      [failed({ attemptCount: 1 }), failed({ attemptCount: 1, reason: "x" })],
      [],
    ],
    [
      "declined again, to be seen from the next retry",
      [failed(), failed({ nextRetryAt: "2026-02-09T00:00:00.000Z" })],
      [["order.failed", 2]],
    ],
    ["declined for the last time", [failed(), failed({ status: "UNCOLLECTIBLE" })], [["order.failed", 2]]],
    [
      "counted when it began, then declined",
      [order(1, 1, { status: "PENDING", attemptCount: 1 }), failed({ attemptCount: 1 })],
      [["order.failed", 1]],
    ],
    ["declined, then paid", [failed(), order(1, 1)], [["order.recovered", 2]]],
    [
      "declined, waiting, then paid",
      [failed(), order(1, 1, { status: "PENDING" }), order(1, 1)],
      [["order.recovered", 2]],
    ],
    ["first seen RECOVERED", [order(1, 1, { status: "RECOVERED", attemptCount: 3 })], [["order.recovered", 3]]],
    ["first seen RECOVERED, uncounted", [order(1, 1, { status: "RECOVERED" })], [["order.recovered", 2]]],
    [
      "paid, then an older decline that comes late",
      [failed({ attemptCount: 1 }), order(1, 1, { attemptCount: 2 }), failed({ attemptCount: 1 })],
      [],
    ],
    [
      "declined, waiting, then the same decline again",
      [failed({ attemptCount: 1 }), order(1, 1, { status: "PENDING" }), failed({ attemptCount: 1 })],
      [],
    ],
    ["recovered, then called PAID", [failed(), order(1, 1, { status: "RECOVERED" }), order(1, 1)], []],
  ])("%s", (_name, records, expected) => {
    expect(
      eventsOf(subscription(1), ...records).map(({ topic, data }) => [
        topic as string,
        data["attempt_count"] as number,
      ]),
    ).toEqual(expected);
  });

  test.each([
    [{ status: "FAILED" as const }, false],
    [{ status: "UNCOLLECTIBLE" as const }, true],
    [{ status: "FAILED" as const, retriesExhausted: true }, true],
  ])("%p: retries_exhausted is %p", (fields, exhausted) => {
    expect(eventsOf(subscription(1), order(1, 1, fields))[0]?.data["retries_exhausted"]).toBe(exhausted);
  });
});

describe("rewards and cancellation flows", () => {
  test("give one event for each id", () => {
    expect(topicsOf(reward("r"), reward("r"))).toEqual([]);
    expect(topicsOf(subscription(1), cancelFlow("c"), cancelFlow("c", { saved: true }))).toEqual([]);
  });

  test("a reward's own fields are passed on as they are", () => {
    const fields = { credit_cents: 500, discount_code: null, tiers: [{ name: "gold" }] };
    const { milestone: _milestone, ...bare } = reward("r", { source: "referral" });
    expect(eventsOf({ ...bare, ...fields } as MirrorRecord)[0]?.data).toEqual({
      source: "referral",
      customer_id,
      ...fields,
    });
  });
});
