import { describe, expect, test } from "bun:test";
import { CYCLE_MS, DAY, type SampleRecord } from "../../../src/cli/demo/sample-records.ts";
import type { OrderRecord, SubscriptionRecord } from "../../../src/domain/records/record-schemas.ts";
import { parseRecord } from "../../../src/domain/records/records.ts";
import { isoUtc } from "../../../src/lib/time.ts";
import { START } from "../../support/app.ts";
import { simulateShop } from "./simulate-shop.ts";

const { past, events } = simulateShop({ customers: 40, events: 300, startedAt: START });
const REASONS = ["insufficient_funds", "expired_payment_method", "payment_method_declined"];

function ordersOf(records: readonly SampleRecord[]): OrderRecord[] {
  return records.filter((record) => record.type === "order");
}

function contractsOf(records: readonly SampleRecord[]): SubscriptionRecord[] {
  return records.filter((record) => record.type === "subscription");
}

test("every record of a demo is valid, and each order, reward and cancellation has an id of its own", () => {
  const records = [...past, ...events.flatMap((event) => event.records)];
  expect(records.filter((record) => "refused" in parseRecord(record))).toEqual([]);
  const charges = ordersOf(records).flatMap(({ shopifyId }) => shopifyId ?? []);
  expect(new Set(charges).size).toBe(charges.length);
  const others = records.flatMap((record) => ("id" in record ? record.id : []));
  expect(new Set(others).size).toBe(others.length);
});

describe("the past of a demo", () => {
  test("has a customer, a contract and a paid checkout for each customer wanted", () => {
    const first = past.slice(0, 3);
    expect(first.map(({ type }) => type)).toEqual(["customer", "subscription", "order"]);
    expect(past.filter(({ type }) => type === "customer")).toHaveLength(40);
    const startedAt = new Map(contractsOf(past).map((record) => [record.shopifyId, record.startedAt]));
    expect(startedAt.size).toBe(40);
    const checkouts = ordersOf(past).filter(({ cycleNumber }) => cycleNumber === 0);
    expect(checkouts).toHaveLength(40);
    for (const checkout of checkouts)
      expect(checkout).toMatchObject({
        source: "checkout",
        status: "PAID",
        billedAt: startedAt.get(checkout.subscription),
      });
  });

  test("bills each contract every four weeks until today", () => {
    for (const { shopifyId, startedAt } of contractsOf(past)) {
      const orders = ordersOf(past).filter(({ subscription }) => subscription === shopifyId);
      expect(orders.map(({ cycleNumber }) => cycleNumber)).toEqual([...orders.keys()]);
      const billedOrders = orders.filter(({ status }) => ["PAID", "RECOVERED", "SKIPPED"].includes(status));
      const began = Date.parse(startedAt ?? "");
      expect(billedOrders.map(({ billedAt }) => billedAt)).toEqual(
        billedOrders.map((_, cycle) => isoUtc(began + cycle * CYCLE_MS)),
      );
      expect(billedOrders).toHaveLength(Math.ceil((START - began) / CYCLE_MS));
      expect(START - began).toBeGreaterThan(20 * DAY);
      expect(START - began).toBeLessThan(420 * DAY);
    }
  });

  test("has contracts of every status: of ten, six are active", () => {
    const last = new Map(contractsOf(past).map((record) => [record.shopifyId, record]));
    const yesterday = isoUtc(START - DAY);
    const ten = [
      ...Array.from({ length: 6 }, () => ({ status: "ACTIVE" })),
      { status: "PAUSED" },
      { status: "CANCELLED", nextBillingDate: null, cancelledAt: yesterday },
      { status: "EXPIRED", nextBillingDate: null },
      { status: "PAYMENT_FAILED" },
    ];
    expect([...last.values()]).toMatchObject([...ten, ...ten, ...ten, ...ten]);
    const failed = [...last.values()].filter(({ status }) => status === "PAYMENT_FAILED");
    for (const { shopifyId } of failed) {
      const order = ordersOf(past).findLast(({ subscription }) => subscription === shopifyId);
      expect(["FAILED", "UNCOLLECTIBLE", "PENDING"]).toContain(order?.status ?? "none");
      expect(order?.billedAt).toBe(yesterday);
    }
  });

  test("has several products and amounts, and customers who differ", () => {
    const lines = contractsOf(past).flatMap((record) => record.lines);
    expect(new Set(lines.map(({ title }) => title)).size).toBe(5);
    expect(new Set(lines.map(({ quantity }) => quantity))).toEqual(new Set([1, 2]));
    for (const order of ordersOf(past)) {
      const [line] = order.lines;
      const subtotalCents = (line?.quantity ?? 0) * (line?.unitPriceCents ?? 0);
      expect(order).toMatchObject({ subtotalCents, discountCents: subtotalCents / 10, creditsCents: 0 });
    }
    const customers = past.filter((record) => record.type === "customer");
    expect(new Set(customers.map(({ creditsCents }) => creditsCents))).toEqual(new Set([0, 500]));
    expect(new Set(customers.map(({ loyaltyTier }) => loyaltyTier))).toEqual(new Set([0, 1, 2]));
    expect(new Set(customers.map(({ marketingConsent }) => marketingConsent))).toEqual(new Set([true, false]));
    for (const { email, firstName, lastName, shopifyId } of customers)
      expect(email).toBe(`${firstName}.${lastName}.${shopifyId.split("/").at(-1)}@example.com`.toLowerCase());
  });
});

test("an order of the demo has a gid if it was charged, and a reason if it was declined", () => {
  for (const order of ordersOf([...past, ...events.flatMap(({ records }) => records)])) {
    const { status, shopifyId, reason } = order;
    const isCharged = status === "PAID" || status === "RECOVERED";
    expect(shopifyId ?? "none").toMatch(isCharged ? /^gid:\/\/shopify\/Order\/\d{4}$/ : /^none$/);
    if (status === "FAILED" || status === "UNCOLLECTIBLE") expect(REASONS).toContain(reason ?? "none");
    else expect(reason ?? "none").toBe("none");
    if (status === "UNCOLLECTIBLE")
      expect(order).toMatchObject({ attemptCount: 4, nextRetryAt: null, retriesExhausted: true });
  }
});

/** The records of each event of the demo. `before` and `last` are the contract and its last order. */
function recordsOf(at: number, reason: string, before?: SubscriptionRecord, last?: OrderRecord) {
  const active = { type: "subscription", status: "ACTIVE", nextBillingDate: isoUtc(at + CYCLE_MS) };
  const billed = { type: "order", billedAt: isoUtc(at), cycleNumber: (last?.cycleNumber ?? -1) + 1 };
  const again = { ...billed, billedAt: last?.billedAt, cycleNumber: last?.cycleNumber };
  const attemptCount = (last?.attemptCount ?? 0) + 1;
  const declined = { status: "FAILED", retriesExhausted: false };
  const settled = { reason: null, nextRetryAt: null, retriesExhausted: null };
  return {
    "a new subscriber": [
      { type: "customer" },
      { ...active, startedAt: isoUtc(at) },
      { ...billed, source: "checkout", status: "PAID" },
    ],
    "a renewal is charged": [{ ...billed, source: "recurring", status: "PAID" }, active],
    "a renewal is declined": [
      { ...billed, ...declined, source: "recurring", attemptCount: 1, reason, nextRetryAt: isoUtc(at + DAY) },
      { type: "subscription", status: "PAYMENT_FAILED" },
    ],
    "a renewal is declined again": [{ ...again, ...declined, attemptCount, nextRetryAt: isoUtc(at + 3 * DAY) }],
    "a failed renewal is recovered": [{ ...again, ...settled, status: "RECOVERED", attemptCount }, active],
    "a subscription is paused": [{ status: "PAUSED", nextBillingDate: before?.nextBillingDate }],
    "a subscription is resumed": [active],
    "a subscription is cancelled": [
      { type: "cancel_flow", accepted: false, saved: false },
      { type: "subscription", status: "CANCELLED", nextBillingDate: null, churnType: "voluntary" },
    ],
    "an offer prevents a cancellation": [{ type: "cancel_flow", accepted: true, saved: true }],
    "a loyalty reward is earned": [{ type: "reward", source: "loyalty" }],
    "a streak reward is earned": [{ type: "reward", source: "streak" }],
    "a referral reward is earned": [{ type: "reward", source: "referral" }],
  };
}

test("each event of the demo has the records that its title says, and its contract has a status that allows it", () => {
  const contracts = new Map(contractsOf(past).map((record) => [record.shopifyId, record]));
  const orders = new Map(ordersOf(past).map((order) => [order.subscription, order]));
  const seen = new Set<string>();
  for (const { at, title, records } of events) {
    const [kind = "", detail = ""] = title.split(/ \(|\)/);
    seen.add(kind);
    const [flow] = records.filter((record) => record.type === "cancel_flow");
    const gid = flow?.subscription ?? contractsOf(records)[0]?.shopifyId ?? ordersOf(records)[0]?.subscription ?? "";
    const [before, last] = [contracts.get(gid), orders.get(gid)];
    const expected: Record<string, object[]> = recordsOf(at, detail, before, last);
    expect(records).toMatchObject(expected[kind] ?? []);
    if (kind === "a renewal is declined again") expect(detail).toBe(`attempt ${ordersOf(records)[0]?.attemptCount}`);
    if (kind === "a subscription is resumed") expect(before?.status).toBe("PAUSED");
    else expect(before?.status ?? "ACTIVE").toMatch(/^(ACTIVE|PAYMENT_FAILED)$/);
    if (/again|recovered/.test(kind)) expect(last?.status).toBe("FAILED");
    for (const record of contractsOf(records)) contracts.set(record.shopifyId, record);
    for (const order of ordersOf(records)) orders.set(order.subscription, order);
  }
  expect([...seen].toSorted()).toEqual(Object.keys(recordsOf(0, "")).toSorted());
  const attempts = events.flatMap(({ records }) => ordersOf(records).map(({ attemptCount }) => attemptCount ?? 0));
  expect(Math.max(...attempts)).toBe(4);
});

test("a demo begins with a declined charge, a reward, and the recovery of a declined charge", () => {
  expect(events.slice(0, 3).map(({ title }) => title)).toEqual([
    expect.stringMatching(/^a renewal is declined \(/),
    expect.stringMatching(/^a \w+ reward is earned$/),
    "a failed renewal is recovered",
  ]);
});
