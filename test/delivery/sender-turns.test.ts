import { describe, expect, test } from "bun:test";
import type { AttemptOutcome } from "../../src/delivery/attempt.ts";
import { START } from "../support/app.ts";
import { contracts, FAILED, MINUTE, OK, sendingSlowly } from "./slow-sending.ts";

describe("attempts that end one after the other", () => {
  const nextRound = () => new Promise((next) => setImmediate(next));

  test("are recorded together when half of the attempts under way have ended", async () => {
    const { addShop, wake, settle, newAttempts, noteRecorded } = await sendingSlowly();
    for (const name of ["a", "b", "c", "d", "e", "f", "g", "h"]) await addShop(name, 1);
    await wake();
    const recorded = noteRecorded();
    for (const attempt of newAttempts().slice(0, 4)) {
      attempt.end();
      await nextRound();
    }
    await settle();
    expect(recorded).toEqual([4]);
  });

  test("are recorded at once if somebody asks for a turn", async () => {
    const { addShop, sender, wake, newAttempts, noteRecorded, end } = await sendingSlowly();
    for (const name of ["a", "b", "c", "d", "e", "f", "g", "h"]) await addShop(name, 1);
    await wake();
    const recorded = noteRecorded();
    const [first, second] = newAttempts();
    first?.end();
    await nextRound();
    sender.wake();
    await nextRound();
    await nextRound();
    await end([second]);
    expect(recorded).toEqual([1, 1]);
  });
});

describe("the order of attempts", () => {
  test("takes shops in turn, and of each shop the oldest delivery first", async () => {
    const { addShop, queue, wake, newAttempts, end } = await sendingSlowly({ concurrency: 1 });
    const shops = [await addShop("a", 1), await addShop("b", 1), await addShop("c", 1)];
    const order: string[] = [];
    async function attemptAll(count: number): Promise<void> {
      await wake();
      for (let n = 0; n < count; n += 1) {
        const running = newAttempts();
        order.push(...contracts(running));
        await end(running);
      }
    }
    // Now every endpoint has been tried.
    await attemptAll(3);
    for (const shop of shops) await queue(shop, 2, 4);
    await attemptAll(9);
    expect(order.slice(3)).toEqual(["1 2", "2 2", "3 2", "1 3", "2 3", "3 3", "1 4", "2 4", "3 4"]);
  });

  test("begins one attempt at every untried endpoint before any attempt ends", async () => {
    const { addShop, wake, newAttempts } = await sendingSlowly({ concurrency: 512 });
    // A turn begins at most 32 such attempts, so this takes three turns.
    for (let n = 0; n < 70; n += 1) await addShop(`shop${n}`, 2);
    await wake();
    const shops = newAttempts().map(({ claim }) => claim.shopId);
    expect([shops.length, new Set(shops).size]).toEqual([70, 70]);
  });

  test("gives one attempt to an endpoint that was never tried, then one more for each quick answer", async () => {
    const { newAttempts, begin, end } = await sendingSlowly();
    await begin("a", 20);
    const counts: number[] = [];
    for (let round = 0; round < 4; round += 1) {
      const running = newAttempts();
      counts.push(running.length);
      await end(running);
    }
    expect(counts).toEqual([1, 2, 4, 4]);
  });

  test.each<[string, Partial<AttemptOutcome>, number]>([
    ["times out", { statusCode: null, error: "The endpoint did not answer within 10 seconds.", timedOut: true }, 0],
    ["takes a second four times", {}, 1_000],
  ])("gives one attempt to an endpoint that %s", async (_name, outcome, durationMs) => {
    const { newAttempts, steady, beginFour, end } = await sendingSlowly();
    const { running } = await beginFour("a", 20);
    const [first, ...others] = running;
    steady.ms += durationMs;
    await end([first], { ...OK, ...outcome });
    // Three attempts still run. They were started when the endpoint was quick.
    expect([others.length, newAttempts().length]).toEqual([3, 0]);
    await end(others.slice(0, 2), { ...OK, ...outcome });
    expect(newAttempts()).toHaveLength(0);
    await end(others.slice(2), { ...OK, ...outcome });
    expect(newAttempts()).toHaveLength(1);
  });

  test("gives all attempts back within a second after a timeout, if the endpoint answers again", async () => {
    const { newAttempts, steady, beginFour, end } = await sendingSlowly();
    const { running } = await beginFour("a", 40);
    steady.ms += 10_000;
    await end(running, { ...OK, timedOut: true });
    const counts: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const recovered = newAttempts();
      counts.push(recovered.length);
      steady.ms += 200;
      await end(recovered);
    }
    expect(counts).toEqual([1, 1, 2, 4, 4]);
  });
});

describe("a turn", () => {
  test("claims nothing while no slot is free", async () => {
    const { wake, newAttempts, deliveries, clock, begin } = await sendingSlowly({ concurrency: 1 });
    const shop = await begin("a", 2);
    expect(newAttempts()).toHaveLength(1);
    let looked = 0;
    const { dueQueues } = deliveries;
    deliveries.dueQueues = async (now) => {
      looked += 1;
      return dueQueues(now);
    };
    await wake();
    expect([looked, newAttempts().length]).toEqual([0, 0]);
    expect(await dueQueues(clock.ms)).toEqual([{ shopId: shop.id, kind: "webhook" }]);
  });

  test("records all results of one moment, and claims what comes next, in one transaction", async () => {
    const { deliveries, end, beginFour } = await sendingSlowly();
    const { running } = await beginFour("a", 11);
    const turns: [number, number][] = [];
    const { recordAndClaim } = deliveries;
    deliveries.recordAndClaim = async (results, ...others) => {
      const done = await recordAndClaim(results, ...others);
      turns.push([done.recorded.length, done.claimed.length]);
      return done;
    };
    await end(running);
    expect(turns).toEqual([[4, 4]]);
  });

  test("makes no transaction if there is nothing to record or to claim", async () => {
    const { sender, wake, deliveries } = await sendingSlowly();
    deliveries.recordAndClaim = () => Promise.reject(new Error("it was called"));
    await wake();
    expect(sender.failing).toBe(false);
  });

  test.each([
    ["5 seconds", false, 15_000],
    ["10 seconds between nodes, whose clocks differ,", true, 20_000],
  ])("claims with a lease until %s after the timeout of the attempt", async (_name, isShared, leaseMs) => {
    const { deliveries, clock, begin } = await sendingSlowly({ isShared });
    const shop = await begin("a", 1);
    expect(await deliveries.dueQueues(clock.ms + leaseMs - 1)).toEqual([]);
    expect(await deliveries.dueQueues(clock.ms + leaseMs)).toEqual([{ shopId: shop.id, kind: "webhook" }]);
  });
});

test("the history has the beginning of each attempt and its duration in whole milliseconds", async () => {
  const { addShop, wake, deliveries, log, clock, steady, endNew } = await sendingSlowly();
  const shop = await addShop("a", 1);
  clock.ms += 7;
  await wake();
  clock.ms += 1_234;
  steady.ms += 1_234.4;
  await endNew(FAILED);
  const [{ id, nextAttemptAt } = { id: "", nextAttemptAt: 0 }] = await log(shop);
  expect((await deliveries.show(shop.id, id)).history).toMatchObject([
    { startedAt: START + 7, duration: 1_234, statusCode: 500 },
  ]);
  expect(nextAttemptAt).toBe(START + 7 + 2 * MINUTE);
});

test("an attempt that fails by a defect of the program is made again after its lease, and does not count", async () => {
  const { sender, addShop, wake, settle, newAttempts, log, logged, clock, endNew, begin, end } = await sendingSlowly({
    concurrency: 1,
  });
  const shop = await addShop("a", 1);
  const other = await begin("b", 1);
  newAttempts()[0]?.fail(new Error("the secret cannot be read"));
  await settle();
  expect(logged.join("")).toContain("the secret cannot be read");
  expect(sender.failing).toBe(false);
  // The failed attempt's slot is free for another shop.
  const [next] = newAttempts();
  expect(next?.claim.shopId).toBe(other.id);
  await end([next]);
  expect(await log(shop)).toMatchObject([{ status: "pending", attempts: 0 }]);
  clock.ms += 15_000;
  await wake();
  await endNew();
  expect(await log(shop)).toMatchObject([{ status: "delivered", attempts: 1 }]);
});

test("a turn knows how many attempts of a shop may run in all processes", async () => {
  const { deliveries, endNew, begin } = await sendingSlowly();
  const { recordAndClaim } = deliveries;
  const limits: unknown[] = [];
  deliveries.recordAndClaim = (...args) => {
    limits.push(args[1].map(({ shopId, limit }) => [shopId, limit]));
    return recordAndClaim(...args);
  };
  const shop = await begin("a", 9);
  await endNew();
  await endNew();
  expect(limits.slice(0, 3)).toEqual([1, 2, 4].map((limit) => [[shop.id, limit]]));
});

test("a defect of the program says nothing about the endpoint", async () => {
  const { settle, newAttempts, begin } = await sendingSlowly();
  await begin("a", 9);
  newAttempts()[0]?.fail(new Error("the secret cannot be read"));
  await settle();
  expect(newAttempts()).toHaveLength(1);
});

test("a pace is stored with the next result if its own result came too late to be recorded", async () => {
  const { wake, newAttempts, deliveries, clock, endNew, begin, end } = await sendingSlowly();
  const shop = await begin("a", 1);
  const [late] = newAttempts();
  clock.ms += 15_000;
  // Another process takes over the delivery, and is killed.
  await deliveries.recordAndClaim(
    [],
    [{ shopId: shop.id, kind: "webhook", count: 1 }],
    clock.ms,
    clock.ms + 15_000,
    [],
  );
  await end([late]);
  expect(await deliveries.listPaces()).toEqual([]);
  clock.ms += 15_000;
  await wake();
  await endNew();
  expect(await deliveries.listPaces()).toMatchObject([{ shopId: shop.id, pace: "quick" }]);
});

test("a restart does not forget that an endpoint hangs", async () => {
  const first = await sendingSlowly();
  const shop = await first.addShop("a", 9);
  await first.wake();
  await first.endNew();
  await first.endNew({ ...OK, timedOut: true });
  expect(await first.deliveries.listPaces()).toMatchObject([
    { shopId: shop.id, pace: "slow", timedOutAt: expect.any(Number) },
  ]);
});

test("a workflow trigger that hangs holds up no webhook, and says nothing about the endpoint", async () => {
  const { addShop, chooseTriggers, queue, wake, newAttempts, deliveries, end } = await sendingSlowly();
  const shop = await addShop("a", 4);
  await chooseTriggers(shop);
  await queue(shop, 5, 6);
  await wake();
  let begun = newAttempts();
  const [hanging] = begun.filter(({ claim }) => claim.kind === "trigger");
  const webhooksPerTurn: number[] = [];
  for (; begun.length > 0; begun = newAttempts()) {
    const webhooks = begun.filter(({ claim }) => claim.kind === "webhook");
    webhooksPerTurn.push(webhooks.length);
    await end(webhooks);
  }
  expect(webhooksPerTurn).toEqual([1, 2, 3]);
  await end([hanging], { ...OK, timedOut: true });
  begun = newAttempts();
  expect(begun.map(({ claim }) => claim.kind)).toEqual(["trigger"]);
  expect(await deliveries.listPaces()).toMatchObject([{ shopId: shop.id, pace: "quick", timedOutAt: null }]);
});

test("an attempt that another process made in the meantime counts", async () => {
  const { deliveries, wake, newAttempts, clock, log, endNew, begin, end } = await sendingSlowly();
  const shop = await begin("a", 2);
  await endNew();
  const [slow] = newAttempts();
  clock.ms += 15_000;
  const { claimed } = await deliveries.recordAndClaim(
    [],
    [{ shopId: shop.id, kind: "webhook", count: 1 }],
    clock.ms,
    clock.ms + 15_000,
    [],
  );
  const outcome = { statusCode: 500, error: "The endpoint responded with HTTP 500." };
  const failed = claimed.map((claim) => ({ claim, outcome, startedAt: clock.ms, duration: 1 }));
  await deliveries.recordAndClaim(failed, [], clock.ms, clock.ms, [MINUTE]);
  clock.ms += MINUTE;
  // The running attempt continues under a new lease.
  await wake();
  expect(newAttempts()).toEqual([]);
  await end([slow]);
  expect(await log(shop)).toMatchObject([
    { status: "delivered", attempts: 2 },
    { status: "delivered", attempts: 1 },
  ]);
});
