import { describe, expect, test } from "bun:test";
import { TOPIC_NAMES } from "../../src/domain/events/event.ts";
import { sampleEvent } from "../../src/domain/events/sample.ts";
import { nextTurn } from "../../src/lib/waits.ts";
import { START } from "../support/app.ts";
import { eventually } from "../support/eventually.ts";
import { cancelFlow, customer, order, reward, subscription } from "../support/records.ts";
import { newestId, retrying, sending, settled } from "./sending.ts";

const MINUTE = 60_000;

test("every topic arrives in its envelope, with topic and signature in the headers", async () => {
  const { intake, receiver, secret } = await sending();
  const records = [
    subscription(1),
    order(1, 1),
    order(1, 2, { status: "FAILED", shopifyId: null, reason: "expired_card" }),
    order(1, 2, { status: "RECOVERED" }),
    reward("r"),
    cancelFlow("c"),
    subscription(1, { status: "CANCELLED" }),
  ];
  for (const record of records) expect((await intake(record)).status).toBe(202);
  const received = await receiver.gets(8);
  expect(received.map(({ topic }) => topic).toSorted()).toEqual(TOPIC_NAMES.toSorted());
  for (const { body, json, topic, id } of received) {
    expect(Object.keys(json)).toEqual(["id", "topic", "created_at", "shop", "data"]);
    expect(json).toMatchObject({ topic, created_at: "2026-03-01T12:00:00.000Z", shop: "alpha.myshopify.com" });
    expect(id).toMatch(/^whd_[a-z2-7]{24}$/);
    expect(JSON.stringify(json)).toBe(body);
  }
  expect(new Set(received.map(({ id }) => id)).size).toBe(8);
  expect(await receiver.allGenuine(secret)).toBe(true);
});

describe("nothing is queued", () => {
  test("for topics that are not selected", async () => {
    const { intake, log } = await sending(["order.failed"]);
    await intake([subscription(1), order(1, 1)]);
    expect(await log()).toEqual([]);
  });

  test("without an endpoint", async () => {
    const { test, shop, intake, log } = await sending();
    await test.app.store.webhooks.clear(shop.id);
    await intake(subscription(1));
    expect(await log()).toEqual([]);
  });

  test("on a plan without access, but earlier deliveries are still sent", async () => {
    const { test, intake, log, receiver, advance } = await sending();
    receiver.answer = () => new Response(null, { status: 500 });
    await intake(subscription(1));
    await settled(log, "retrying", 1);
    await test.app.store.shops.set("alpha.myshopify.com", { plan: "free" });
    await intake(subscription(2));
    receiver.answer = () => new Response();
    advance(2 * MINUTE);
    await settled(log, "delivered", 2);
    expect(await log()).toHaveLength(1);
  });

  test("for a submission that is refused", async () => {
    const { intake, log } = await sending();
    expect((await intake([subscription(1), order(9, 1)])).status).toBe(400);
    expect(await log()).toEqual([]);
  });

  test("for a load without events", async () => {
    const { test, shop, log } = await sending();
    const [applied] = await test.app.store.mirror.applyRecords(
      [{ shop, records: [subscription(1)], eventsSince: Number.POSITIVE_INFINITY }],
      START,
      [],
    );
    expect(applied).toEqual({ accepted: 1, changed: 1, events: 0 });
    expect(await log()).toEqual([]);
  });
});

describe("an endpoint that fails", () => {
  test("gets five attempts over thirty minutes with the same bytes, and then the delivery is dead", async () => {
    const { test, intake, receiver, secret, log } = await sending(["subscription.created"]);
    receiver.answer = () => new Response(null, { status: 500 });
    await intake(subscription(1));
    const planned: (number | null)[] = [];
    for (let attempts = 1; attempts <= 5; attempts += 1) {
      const { nextAttemptAt } = await settled(log, attempts === 5 ? "dead" : "retrying", attempts);
      planned.push(nextAttemptAt === null ? null : (nextAttemptAt - test.clock.ms) / MINUTE);
      test.clock.ms = nextAttemptAt ?? test.clock.ms + 60 * MINUTE;
      test.app.sender.wake();
    }
    expect(planned).toEqual([2, 4, 8, 16, null]);
    expect(await log()).toMatchObject([{ lastStatusCode: 500, error: "The endpoint responded with HTTP 500." }]);
    expect(receiver.received).toHaveLength(5);
    expect(new Set(receiver.received.map(({ body, signature }) => body + signature)).size).toBe(1);
    expect(await receiver.allGenuine(secret)).toBe(true);
  });

  test("gets no attempt before the planned time", async () => {
    const { intake, receiver, advance } = await retrying();
    advance(2 * MINUTE - 1);
    await intake(subscription(2));
    await receiver.gets(2);
    expect(receiver.received.map(({ json }) => json.data["contract_id"])).toEqual([
      "gid://shopify/SubscriptionContract/1",
      "gid://shopify/SubscriptionContract/2",
    ]);
  });

  test("and then succeeds has a delivered delivery, and both attempts in its history", async () => {
    const { test, intake, receiver, log, advance } = await sending(["subscription.created"]);
    receiver.answer = () => new Response(null, { status: receiver.received.length === 1 ? 503 : 200 });
    await intake(subscription(1));
    await settled(log, "retrying", 1);
    advance(2 * MINUTE);
    expect(await settled(log, "delivered", 2)).toMatchObject({ lastStatusCode: 200, error: null, nextAttemptAt: null });
    expect((await test.app.store.deliveries.show(1, await newestId(log))).history).toMatchObject([
      { number: 1, statusCode: 503, startedAt: START },
      { number: 2, statusCode: 200, startedAt: START + 2 * MINUTE },
    ]);
  });

  test("by hanging gets a timeout", async () => {
    const { intake, receiver, log } = await sending(["subscription.created"]);
    receiver.answer = () => new Promise(() => undefined);
    await intake(subscription(1));
    const error = "The endpoint did not answer within 0.5 seconds.";
    expect(await settled(log, "retrying", 1)).toMatchObject({ lastStatusCode: null, error });
  });
});

test("after a new secret, deliveries queued before keep their signature, and later ones are signed with the new secret", async () => {
  const { test, shop, intake, receiver, secret, log, advance } = await retrying();
  const rotated = await test.app.store.webhooks.rotateSecret(shop.id, START);
  receiver.answer = () => new Response();
  advance(2 * MINUTE);
  await settled(log, "delivered", 2);
  expect(await receiver.allGenuine(secret)).toBe(true);
  receiver.received.splice(0);
  await intake(subscription(2));
  await receiver.gets(1);
  expect(await receiver.allGenuine(rotated)).toBe(true);
  expect(rotated).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
});

test("an attempt that a crash interrupted is made again when its lease has ended, and does not count", async () => {
  const { test, shop, receiver, log, advance } = await sending(["subscription.created"]);
  await test.app.store.mirror.applyRecords([{ shop, records: [subscription(1)] }], START, []);
  // Another process claims the delivery and is killed.
  const {
    claimed: [claim],
  } = await test.app.store.deliveries.recordAndClaim(
    [],
    [{ shopId: shop.id, kind: "webhook", count: 1 }],
    START,
    START + 15_000,
    [],
  );
  if (claim === undefined) throw new Error("nothing was claimed");
  expect(claim.topic).toBe("subscription.created");
  advance(14_999);
  expect(await test.app.store.deliveries.dueQueues(test.clock.ms)).toEqual([]);
  advance(1);
  await settled(log, "delivered", 1);
  expect(receiver.received).toHaveLength(1);
  // The other process was only suspended. It now records its result, too late.
  const outcome = { statusCode: 500, error: "The endpoint responded with HTTP 500." };
  const late = { claim, outcome, startedAt: START, duration: 1 };
  await test.app.store.deliveries.recordAndClaim([late], [], test.clock.ms, 0, []);
  expect(await log()).toMatchObject([{ status: "delivered", attempts: 1 }]);
});

test("one shop has at most 4 attempts at once, however many deliveries are due", async () => {
  const { intake, receiver } = await sending(["subscription.created"], { SDS_DELIVERY_TIMEOUT: "5s" });
  let most = 0;
  const held: (() => void)[] = [];
  receiver.answer = async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    held.push(resolve);
    most = Math.max(most, held.length);
    // The endpoint answers the first request alone, and the next two together. After that it answers whenever four
    // requests wait. It answers the last request at once, because fewer than four may be left.
    const { length } = receiver.received;
    if (held.length >= 4 || length === 1 || length === 3 || length === 60) {
      await nextTurn();
      for (const answer of held.splice(0)) answer();
    }
    await promise;
    return new Response();
  };
  await intake(Array.from({ length: 60 }, (_, n) => subscription(n + 1)));
  await receiver.gets(60);
  expect(most).toBe(4);
  expect(receiver.overlaps).toEqual([]);
});

test("results that cannot be recorded make the program not ready, and are recorded when the database works again", async () => {
  const { test, intake, receiver, log } = await sending(["subscription.created"]);
  const { deliveries } = test.app.store;
  const { recordAndClaim } = deliveries;
  deliveries.recordAndClaim = async (results, ...others) => {
    if (results.length > 0) throw new Error("database or disk is full");
    return recordAndClaim(results, ...others);
  };
  await intake(subscription(1));
  await receiver.gets(1);
  await eventually(() => test.app.sender.failing);
  expect((await test.request("/readyz")).status).toBe(503);
  expect(test.logged.join("")).toContain("database or disk is full");
  deliveries.recordAndClaim = recordAndClaim;
  await settled(log, "delivered", 1);
  test.clock.ms += 1_000;
  expect((await test.request("/readyz")).status).toBe(200);
  expect(receiver.received).toHaveLength(1);
});

test("a test event arrives for any selected topics, and is marked in the log", async () => {
  const { test, shop, receiver, secret, log } = await sending([]);
  const id = await test.app.store.deliveries.queueTest(shop, sampleEvent("order.failed"), START);
  test.app.sender.wake();
  await settled(log, "delivered", 1);
  expect(await log()).toMatchObject([{ id, test: true, topic: "order.failed" }]);
  expect(await receiver.allGenuine(secret)).toBe(true);
});

test("delivered deliveries are removed after their time, and dead ones stay", async () => {
  const { test, intake, receiver, log, advance } = await sending(["subscription.created"], { SDS_RETRY_WAITS: "1ms" });
  receiver.answer = ({ json }) =>
    new Response(null, { status: String(json.data["contract_id"]).endsWith("/1") ? 500 : 200 });
  await intake(subscription(1));
  await settled(log, "retrying", 1);
  advance(1);
  await settled(log, "dead", 2);
  await intake([subscription(2), subscription(3), customer(9)]);
  await eventually(async () => (await log()).filter(({ status }) => status === "delivered").length === 2);
  await test.app.store.deliveries.prune(test.clock.ms, 0);
  expect(await log()).toHaveLength(3);
  await test.app.store.deliveries.prune(test.clock.ms + 10_000, 0);
  expect(await log()).toMatchObject([{ status: "dead" }]);
});
