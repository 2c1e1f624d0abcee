import { describe, expect, test } from "bun:test";
import { TOPIC_NAMES, type Topic } from "../../src/domain/event.ts";
import { sampleEvent } from "../../src/domain/sample.ts";
import { START, type TestApp, testApp } from "../support/app.ts";
import { eventually } from "../support/eventually.ts";
import { Receiver } from "../support/receiver.ts";
import { cancelFlow, customer, order, reward, subscription } from "../support/records.ts";

const MINUTE = 60_000;

async function sending(topics: Topic[] = TOPIC_NAMES, env: Record<string, string> = {}) {
  const test = await testApp({ SDS_EGRESS_ALLOW: "127.0.0.0/8", SDS_DELIVERY_TIMEOUT: "500ms", ...env });
  const shop = await test.addShop();
  const receiver = new Receiver();
  await test.app.store.webhooks.set(shop.shop.id, { url: receiver.url, topics }, START);
  const secret = await test.app.store.webhooks.secret(shop.shop.id, START);
  return { test, ...shop, receiver, secret, log: log(test, shop.shop.id) };
}

function log({ app }: TestApp, shopId: number) {
  return async (count = 20) => app.store.deliveries.list(shopId, { limit: count });
}

/** Waits until the newest delivery has come to a status. */
async function settled(log: () => Promise<{ status: string; attempts: number }[]>, status: string, attempts: number) {
  return eventually(async () => {
    const [newest] = await log();
    return newest?.status === status && newest.attempts === attempts ? newest : undefined;
  });
}

test("every topic arrives: envelope, header, signature, in the transaction's order", async () => {
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

  test("without a URL", async () => {
    const { test, shop, intake, log } = await sending();
    await test.app.store.webhooks.clear(shop.id);
    await intake(subscription(1));
    expect(await log()).toEqual([]);
  });

  test("on a plan without access, while what was queued before is still delivered", async () => {
    const { test, intake, log, receiver } = await sending();
    receiver.answer = () => new Response(null, { status: 500 });
    await intake(subscription(1));
    await settled(log, "retrying", 1);
    await test.app.store.shops.set("alpha.myshopify.com", { plan: "free" });
    await intake(subscription(2));
    receiver.answer = () => new Response();
    test.clock.ms += 2 * MINUTE;
    test.app.sender.wake();
    await settled(log, "delivered", 2);
    expect(await log()).toHaveLength(1);
  });

  test("for what is refused with its submission", async () => {
    const { intake, log } = await sending();
    expect((await intake([subscription(1), order(9, 1)])).status).toBe(400);
    expect(await log()).toEqual([]);
  });

  test("for what is loaded quietly", async () => {
    const { test, shop, log } = await sending();
    const [applied] = await test.app.store.mirror.applyRecords([{ shop, records: [subscription(1)], eventsSince: Number.POSITIVE_INFINITY }], START);
    expect(applied).toEqual({ accepted: 1, changed: 1, events: 0 });
    expect(await log()).toEqual([]);
  });
});

describe("an endpoint that fails", () => {
  test("is tried five times over thirty minutes with the same bytes, and then the delivery is dead", async () => {
    const { test, intake, receiver, secret, log } = await sending(["subscription.created"]);
    receiver.answer = () => new Response(null, { status: 500 });
    await intake(subscription(1));
    const planned: (number | null)[] = [];
    for (let attempts = 1; attempts <= 5; attempts += 1) {
      const { nextAttemptAt } = (await settled(log, attempts === 5 ? "dead" : "retrying", attempts)) as { nextAttemptAt?: number | null };
      planned.push(nextAttemptAt === null || nextAttemptAt === undefined ? null : (nextAttemptAt - test.clock.ms) / MINUTE);
      test.clock.ms = nextAttemptAt ?? test.clock.ms + 60 * MINUTE;
      test.app.sender.wake();
    }
    expect(planned).toEqual([2, 4, 8, 16, null]);
    expect(await log()).toMatchObject([{ lastStatusCode: 500, error: "The endpoint responded with HTTP 500." }]);
    expect(receiver.received).toHaveLength(5);
    expect(new Set(receiver.received.map(({ body, signature }) => body + signature)).size).toBe(1);
    expect(await receiver.allGenuine(secret)).toBe(true);
  });

  test("is not tried before its time", async () => {
    const { test, intake, receiver, log } = await sending(["subscription.created"]);
    receiver.answer = () => new Response(null, { status: 500 });
    await intake(subscription(1));
    await settled(log, "retrying", 1);
    test.clock.ms += 2 * MINUTE - 1;
    test.app.sender.wake();
    await intake(subscription(2));
    await receiver.gets(2);
    expect(receiver.received.map(({ json }) => json.data["contract_id"])).toEqual([
      "gid://shopify/SubscriptionContract/1",
      "gid://shopify/SubscriptionContract/2",
    ]);
  });

  test("then answers, and is delivered", async () => {
    const { test, intake, receiver, log } = await sending(["subscription.created"]);
    receiver.answer = () => new Response(null, { status: receiver.received.length === 1 ? 503 : 200 });
    await intake(subscription(1));
    await settled(log, "retrying", 1);
    test.clock.ms += 2 * MINUTE;
    test.app.sender.wake();
    expect(await settled(log, "delivered", 2)).toMatchObject({ lastStatusCode: 200, error: null, nextAttemptAt: null });
    const [{ id } = { id: "" }] = await log();
    expect((await test.app.store.deliveries.show(1, id)).history).toMatchObject([
      { number: 1, statusCode: 503, startedAt: START },
      { number: 2, statusCode: 200, startedAt: START + 2 * MINUTE },
    ]);
  });

  test("by hanging is a timeout", async () => {
    const { intake, receiver, log } = await sending(["subscription.created"]);
    receiver.answer = () => new Promise(() => undefined);
    await intake(subscription(1));
    expect(await settled(log, "retrying", 1)).toMatchObject({ lastStatusCode: null, error: "The endpoint did not answer within 0.5 seconds." });
  });
});

describe("retry by hand", () => {
  async function dead() {
    const sent = await sending(["subscription.created"], { SDS_RETRY_WAITS: "1ms" });
    sent.receiver.answer = () => new Response(null, { status: 500 });
    await sent.intake(subscription(1));
    await settled(sent.log, "retrying", 1);
    sent.test.clock.ms += 1;
    sent.test.app.sender.wake();
    await settled(sent.log, "dead", 2);
    const [{ id } = { id: "" }] = await sent.log();
    return { ...sent, id };
  }

  test("of a dead delivery begins a new round, the count goes on, and bytes and signature stay", async () => {
    const { test, receiver, log, id } = await dead();
    expect(await test.app.store.deliveries.retry(1, id, test.clock.ms)).toMatchObject({ status: "pending", attempts: 2, nextAttemptAt: test.clock.ms });
    test.app.sender.wake();
    await settled(log, "retrying", 3);
    receiver.answer = () => new Response();
    test.clock.ms += 1;
    test.app.sender.wake();
    await settled(log, "delivered", 4);
    expect(new Set(receiver.received.map(({ body, signature }) => body + signature)).size).toBe(1);
  });

  test("of a delivered one sends it once more", async () => {
    const { test, intake, receiver, log } = await sending(["subscription.created"]);
    await intake(subscription(1));
    const [{ id } = { id: "" }] = await eventually(async () => ((await log())[0]?.status === "delivered" ? log() : undefined));
    await test.app.store.deliveries.retry(1, id, test.clock.ms);
    test.app.sender.wake();
    await settled(log, "delivered", 2);
    expect(receiver.received).toHaveLength(2);
  });

  test("of a retrying one replaces the planned attempt", async () => {
    const { test, intake, receiver, log } = await sending(["subscription.created"]);
    receiver.answer = () => new Response(null, { status: 500 });
    await intake(subscription(1));
    await settled(log, "retrying", 1);
    const [{ id } = { id: "" }] = await log();
    test.clock.ms += 1_000;
    await test.app.store.deliveries.retry(1, id, test.clock.ms);
    test.app.sender.wake();
    expect(await settled(log, "retrying", 2)).toMatchObject({ nextAttemptAt: test.clock.ms + 4 * MINUTE });
  });

  test("while an attempt is under way is refused", async () => {
    const { test, intake, receiver, log } = await sending(["subscription.created"]);
    receiver.answer = () => new Promise(() => undefined);
    await intake(subscription(1));
    await receiver.gets(1);
    const [{ id } = { id: "" }] = await log();
    expect(test.app.store.deliveries.retry(1, id, test.clock.ms)).rejects.toThrow(`an attempt of ${id} is under way`);
  });

  test("of all dead ones counts and keeps to the shop and the time", async () => {
    const { test } = await dead();
    const { deliveries } = test.app.store;
    expect([await deliveries.countDead(1, 0), await deliveries.countDead(1, START + 1), await deliveries.countDead(2, 0)]).toEqual([1, 0, 0]);
    expect([await deliveries.retryDead(2, 0, test.clock.ms), await deliveries.retryDead(1, 0, test.clock.ms)]).toEqual([0, 1]);
  });

  test("of another shop's delivery is no such thing", async () => {
    const { test, id } = await dead();
    const { shop } = await test.addShop("beta.myshopify.com");
    expect(test.app.store.deliveries.retry(shop.id, id, 0)).rejects.toThrow(`there is no delivery ${id}`);
    expect(test.app.store.deliveries.show(shop.id, id)).rejects.toThrow(`there is no delivery ${id}`);
  });
});

test("after a rotation what was queued before keeps its signature, and what comes then has the new one", async () => {
  const { test, shop, intake, receiver, secret, log } = await sending(["subscription.created"]);
  receiver.answer = () => new Response(null, { status: 500 });
  await intake(subscription(1));
  await settled(log, "retrying", 1);
  const rotated = await test.app.store.webhooks.rotateSecret(shop.id, START);
  receiver.answer = () => new Response();
  test.clock.ms += 2 * MINUTE;
  test.app.sender.wake();
  await settled(log, "delivered", 2);
  expect(await receiver.allGenuine(secret)).toBe(true);
  receiver.received.splice(0);
  await intake(subscription(2));
  await receiver.gets(1);
  expect(await receiver.allGenuine(rotated)).toBe(true);
  expect(rotated).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
});

test("an attempt that was cut off is made again when its lease is over, and not counted", async () => {
  const { test, shop, receiver, log } = await sending(["subscription.created"]);
  await test.app.store.mirror.applyRecords([{ shop, records: [subscription(1)] }], START);
  // Another process claims it and is killed.
  const [claim] = await test.app.store.deliveries.turn([], new Map([[shop.id, 1]]), START, START + 15_000, []);
  expect(claim?.topic).toBe("subscription.created");
  test.clock.ms += 14_999;
  test.app.sender.wake();
  expect(await test.app.store.deliveries.dueShops(test.clock.ms)).toEqual([]);
  test.clock.ms += 1;
  test.app.sender.wake();
  await settled(log, "delivered", 1);
  expect(receiver.received).toHaveLength(1);
  // It wakes up after all, too late to say anything.
  if (claim === undefined) throw new Error("nothing was claimed");
  const finished = { claim, outcome: { statusCode: 500, error: "The endpoint responded with HTTP 500." }, startedAt: START, duration: 1 };
  await test.app.store.deliveries.turn([finished], new Map(), test.clock.ms, 0, []);
  expect(await log()).toMatchObject([{ status: "delivered", attempts: 1 }]);
});

test("a shop has at most its places at once, however much is due", async () => {
  const { intake, receiver } = await sending(["subscription.created"], { SDS_DELIVERY_TIMEOUT: "5s" });
  let most = 0;
  let now = 0;
  receiver.answer = async () => {
    now += 1;
    most = Math.max(most, now);
    await new Promise((next) => setTimeout(next, 5));
    now -= 1;
    return new Response();
  };
  await intake(Array.from({ length: 60 }, (_, n) => subscription(n + 1)));
  await receiver.gets(60);
  expect(most).toBe(4);
  expect(receiver.overlaps).toEqual([]);
});

test("stop waits for the attempts that run, and records them", async () => {
  const { test, intake, receiver } = await sending(["subscription.created"], { SDS_DELIVERY_TIMEOUT: "5s" });
  const { promise, resolve } = Promise.withResolvers<Response>();
  receiver.answer = () => promise;
  await intake(subscription(1));
  await receiver.gets(1);
  let stopped = false;
  const { deliveries } = test.app.store;
  const recorded: number[] = [];
  const { turn } = deliveries;
  deliveries.turn = async (finished, ...others) => {
    recorded.push(finished.length);
    return turn(finished, ...others);
  };
  const stopping = test.app.stop().then(() => {
    stopped = true;
  });
  await Promise.resolve();
  expect(stopped).toBe(false);
  resolve(new Response());
  await stopping;
  expect(recorded.reduce((sum, n) => sum + n, 0)).toBe(1);
});

test("what cannot be recorded is said, is not ready, and is recorded when the database is back", async () => {
  const { test, intake, receiver, log } = await sending(["subscription.created"]);
  const { deliveries } = test.app.store;
  const { turn } = deliveries;
  deliveries.turn = async (finished, ...others) => {
    if (finished.length > 0) throw new Error("database or disk is full");
    return turn(finished, ...others);
  };
  await intake(subscription(1));
  await receiver.gets(1);
  await eventually(() => test.app.sender.failing);
  expect((await test.request("/readyz")).status).toBe(503);
  expect(test.logged.join("")).toContain("database or disk is full");
  deliveries.turn = turn;
  await eventually(async () => {
    test.app.sender.wake();
    return (await log())[0]?.status === "delivered";
  });
  test.clock.ms += 1_000;
  expect((await test.request("/readyz")).status).toBe(200);
  expect(receiver.received).toHaveLength(1);
});

test("a test goes the whole way, whatever topics are chosen, and is marked", async () => {
  const { test, shop, receiver, secret, log } = await sending([]);
  const id = await test.app.store.deliveries.queueTest(shop, sampleEvent("order.failed"), START);
  test.app.sender.wake();
  await settled(log, "delivered", 1);
  expect(await log()).toMatchObject([{ id, test: true, topic: "order.failed" }]);
  expect(await receiver.allGenuine(secret)).toBe(true);
});

test("delivered ones are forgotten after their time, dead ones never", async () => {
  const { test, intake, receiver, log } = await sending(["subscription.created"], { SDS_RETRY_WAITS: "1ms" });
  receiver.answer = ({ json }) => new Response(null, { status: String(json.data["contract_id"]).endsWith("/1") ? 500 : 200 });
  await intake(subscription(1));
  await settled(log, "retrying", 1);
  test.clock.ms += 1;
  test.app.sender.wake();
  await settled(log, "dead", 2);
  await intake([subscription(2), subscription(3), customer(9)]);
  await eventually(async () => (await log()).filter(({ status }) => status === "delivered").length === 2);
  await test.app.store.deliveries.prune(test.clock.ms);
  expect(await log()).toHaveLength(3);
  await test.app.store.deliveries.prune(test.clock.ms + 10_000);
  expect(await log()).toMatchObject([{ status: "dead" }]);
});

test("a clock that is set forward puts nothing in flight twice", async () => {
  const { test, intake, receiver, log } = await sending(["subscription.created"], { SDS_DELIVERY_TIMEOUT: "5s" });
  await intake(subscription(1));
  await settled(log, "delivered", 1);
  const { promise, resolve } = Promise.withResolvers<Response>();
  receiver.answer = () => promise;
  await intake(subscription(2));
  await receiver.gets(2);
  test.clock.ms += 60 * MINUTE;
  test.app.sender.wake();
  // Another delivery shows that the turn was made.
  await intake(subscription(3));
  await receiver.gets(3);
  resolve(new Response());
  await eventually(async () => (await log()).every(({ status }) => status === "delivered"));
  expect(receiver.overlaps).toEqual([]);
  expect(receiver.received).toHaveLength(3);
});

test("a look at the queue that failed once is forgotten with the next that works", async () => {
  const { test } = await sending();
  const { deliveries } = test.app.store;
  const { dueShops } = deliveries;
  deliveries.dueShops = async () => {
    throw new Error("disk I/O error");
  };
  test.app.sender.wake();
  await eventually(() => test.app.sender.failing);
  deliveries.dueShops = dueShops;
  await eventually(() => {
    test.app.sender.wake();
    return !test.app.sender.failing;
  });
});
