import { describe, expect, test } from "bun:test";
import { TOPIC_NAMES, type Topic } from "../../../src/domain/events/event.ts";
import { sampleEvent } from "../../../src/domain/events/sample.ts";
import { customerId } from "../../../src/domain/ids.ts";
import type { MirrorRecord } from "../../../src/domain/records/platform-records.ts";
import { MapMirror } from "../../support/map-mirror.ts";
import { cancelFlow, customer, gid, order, reward, subscription } from "../../support/records.ts";

const contract_id = gid.contract(1);
const customer_id = customerId("alpha.myshopify.com", gid.customer(1));

/** Applies records in order. @returns the events of the last record */
function eventsOf(...records: MirrorRecord[]) {
  const mirror = new MapMirror();
  return records.map((record) => mirror.apply(record).events).at(-1) ?? [];
}

function topicsOf(...records: MirrorRecord[]): string[] {
  return eventsOf(...records).map(({ topic }) => topic);
}

const FEBRUARY = "2026-02-01T00:00:00.000Z";
const paused = subscription(1, { status: "PAUSED" });
const cancelled = subscription(1, { status: "CANCELLED" });
const payment = { contract_id, customer_id, cycle_number: 3, total_cents: 1900 };

/**
 * For each topic: records that cause its event, and the event's data. The keys have the order of docs/webhooks.md,
 * "Topics".
 */
const EVENTS: Record<Topic, [MirrorRecord[], Record<string, unknown>]> = {
  "subscription.created": [
    [subscription(1)],
    {
      contract_id,
      customer_id,
      status: "ACTIVE",
      interval: "MONTH",
      interval_count: 1,
      next_billing_date: FEBRUARY,
      selling_plan_id: "gid://shopify/SellingPlan/3",
    },
  ],
  "subscription.updated": [
    [subscription(1), paused],
    { contract_id, customer_id, status: "PAUSED", next_billing_date: FEBRUARY },
  ],
  "subscription.cancelled": [[subscription(1), cancelled], { contract_id, customer_id, churn_type: "voluntary" }],
  "order.charged": [[subscription(1), order(1, 3)], { order_id: gid.order(1003), ...payment, attempt_count: 1 }],
  "order.failed": [
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
      ...payment,
      attempt_count: 2,
      reason: "expired_card",
      next_retry_at: "2026-02-04T00:00:00.000Z",
      retries_exhausted: false,
    },
  ],
  "order.recovered": [
    [subscription(1), order(1, 3, { shopifyId: null, status: "FAILED" }), order(1, 3, { status: "RECOVERED" })],
    { order_id: gid.order(1003), ...payment, attempt_count: 2 },
  ],
  "loyalty.reward_earned": [[customer(1), reward("r")], { source: "streak", customer_id, milestone: 5 }],
  "cancel_flow.completed": [
    [subscription(1), cancelFlow("c")],
    { contract_id, customer_id, reason_id: "price", offer_type: null, accepted: false, saved: false },
  ],
};

test.each(TOPIC_NAMES)("%s and its sample have the fields in the documented order", (topic) => {
  const [records, data] = EVENTS[topic];
  const event = eventsOf(...records).find((each) => each.topic === topic);
  expect(JSON.stringify(event?.data)).toBe(JSON.stringify(data));
  expect(Object.keys(sampleEvent(topic).data).slice(0, 3)).toEqual(Object.keys(data).slice(0, 3));
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
  const failedOrder = order(1, 1, { status: "FAILED" });
  test.each<[string, MirrorRecord[], string[]]>([
    ["on first sight", [subscription(1)], ["subscription.created"]],
    ["on first sight after its end", [cancelled], ["subscription.created"]],
    ["without a change", [subscription(1), subscription(1)], []],
    ["with other lines", [subscription(1), subscription(1, { lines: [] })], []],
    [
      "with another next billing date",
      [subscription(1), subscription(1, { nextBillingDate: "2026-03-01T00:00:00.000Z" })],
      ["subscription.updated"],
    ],
    ["after its cancellation", [subscription(1), cancelled], ["subscription.updated", "subscription.cancelled"]],
    [
      "after another change of a cancelled contract",
      [cancelled, subscription(1, { status: "CANCELLED", lines: [] })],
      [],
    ],
    [
      "with an older revision",
      [subscription(1, { revision: "9" }), subscription(1, { revision: "8", status: "PAUSED" })],
      [],
    ],
    ["after a renewal", [subscription(1), order(1, 1), customer(1)], []],
  ])("%s", (_name, records, topics) => {
    expect(topicsOf(...records)).toEqual(topics);
  });

  const unpaid = subscription(1, { status: "PAYMENT_FAILED" });
  test.each<[string, MirrorRecord[], string]>([
    ["by itself", [subscription(1), cancelled], "voluntary"],
    ["as the source says", [subscription(1), { ...cancelled, churnType: "involuntary" }], "involuntary"],
    ["as the source says, even after PAYMENT_FAILED", [unpaid, { ...cancelled, churnType: "voluntary" }], "voluntary"],
    ["after PAYMENT_FAILED", [unpaid, cancelled], "involuntary"],
    ["after a FAILED order", [subscription(1), failedOrder, cancelled], "involuntary"],
    [
      "after an UNCOLLECTIBLE order",
      [subscription(1), order(1, 1, { status: "UNCOLLECTIBLE" }), cancelled],
      "involuntary",
    ],
    [
      "after a FAILED order that recovered",
      [subscription(1), failedOrder, order(1, 1, { status: "RECOVERED" }), cancelled],
      "voluntary",
    ],
    [
      "after a FAILED order and a later paid order",
      [subscription(1), failedOrder, order(1, 2, { billedAt: "2026-03-01T00:00:00.000Z" }), cancelled],
      "voluntary",
    ],
    [
      "a second time: the type of the first time does not count",
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
  const pending = order(1, 1, { status: "PENDING" });
  const failed = (fields = {}) => order(1, 1, { status: "FAILED", shopifyId: null, ...fields });
  test.each<[string, MirrorRecord[], [string, number][]]>([
    ["paid at once", [order(1, 1)], [["order.charged", 1]]],
    ["of the checkout", [order(1, 0, { source: "checkout" })], [["order.charged", 1]]],
    ["paid, repeated", [order(1, 1), order(1, 1)], []],
    ["paid, changed", [order(1, 1), order(1, 1, { lines: [] })], []],
    ["waiting", [order(1, 1, { status: "PENDING", shopifyId: null })], []],
    ["skipped", [order(1, 1, { status: "SKIPPED", shopifyId: null })], []],
    ["waiting, then paid", [pending, order(1, 1)], [["order.charged", 1]]],
    ["declined", [failed()], [["order.failed", 1]]],
    ["declined, repeated", [failed(), failed()], []],
    ["declined, with the count of the source", [failed({ attemptCount: 4 })], [["order.failed", 4]]],
    [
      "declined again, with the count of the source",
      [failed({ attemptCount: 1 }), failed({ attemptCount: 2 })],
      [["order.failed", 2]],
    ],
    [
      "declined, then changed with the same count",
      [failed({ attemptCount: 1 }), failed({ attemptCount: 1, reason: "x" })],
      [],
    ],
    [
      "declined again, with a new retry date",
      [failed(), failed({ nextRetryAt: "2026-02-09T00:00:00.000Z" })],
      [["order.failed", 2]],
    ],
    ["declined for the last time", [failed(), failed({ status: "UNCOLLECTIBLE" })], [["order.failed", 2]]],
    [
      "waiting with a count, then declined",
      [order(1, 1, { status: "PENDING", attemptCount: 1 }), failed({ attemptCount: 1 })],
      [["order.failed", 1]],
    ],
    ["declined, then paid", [failed(), order(1, 1)], [["order.recovered", 2]]],
    ["declined, waiting, then paid", [failed(), pending, order(1, 1)], [["order.recovered", 2]]],
    ["first seen RECOVERED", [order(1, 1, { status: "RECOVERED", attemptCount: 3 })], [["order.recovered", 3]]],
    ["first seen RECOVERED, without a count", [order(1, 1, { status: "RECOVERED" })], [["order.recovered", 2]]],
    [
      "paid, then a late older decline",
      [failed({ attemptCount: 1 }), order(1, 1, { attemptCount: 2 }), failed({ attemptCount: 1 })],
      [],
    ],
    [
      "declined, waiting, then the same decline again",
      [failed({ attemptCount: 1 }), pending, failed({ attemptCount: 1 })],
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

  test("a reward's own fields are passed on unchanged", () => {
    const fields = { credit_cents: 500, discount_code: null, tiers: [{ name: "gold" }] };
    const { milestone: _milestone, ...bare } = reward("r", { source: "referral" });
    expect(eventsOf({ ...bare, ...fields } as MirrorRecord)[0]?.data).toEqual({
      source: "referral",
      customer_id,
      ...fields,
    });
  });
});
