import { describe, expect, test } from "bun:test";
import type { AttemptOutcome } from "../../src/delivery/attempt.ts";
import { createSender, type SenderSettings } from "../../src/delivery/sender.ts";
import type { Shop } from "../../src/domain/shop.ts";
import { TRIGGER_HANDLES } from "../../src/domain/trigger.ts";
import { createLog } from "../../src/log.ts";
import type { Claim } from "../../src/store/deliveries.ts";
import { TOKENS } from "../conformance/fixtures.ts";
import { START, testApp } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { subscription } from "../support/records.ts";

const MINUTE = 60_000;
const OK: AttemptOutcome = { statusCode: 200, error: null, timedOut: false };

/** One attempt, which ends when the test says so. */
interface Attempt {
  claim: Claim;
  end(outcome?: AttemptOutcome): void;
  fail(error: Error): void;
}

/** A sender with a real database and attempts that wait for the test. */
async function sendingSlowly(changed: Partial<SenderSettings> = {}) {
  const { app, clock, addShop } = await testApp();
  // An attempt takes no time, however busy the machine is.
  const { now } = performance;
  performance.now = () => START;
  afterTest(() => {
    performance.now = now;
  });
  const { deliveries, webhooks, mirror } = app.store;
  const logged: string[] = [];
  const unended = new Set<Attempt>();
  const attempts: Attempt[] = [];
  let endPause = () => {};
  const sender = createSender(
    {
      deliveries,
      attempt(claim) {
        const { promise, resolve, reject } = Promise.withResolvers<AttemptOutcome>();
        const attempt = { claim, end: (outcome = OK) => resolve(outcome), fail: reject };
        attempts.push(attempt);
        unended.add(attempt);
        return promise.finally(() => unended.delete(attempt));
      },
      now: clock.now,
      sleep: (_ms, signal) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        endPause = resolve;
        if (signal?.aborted) resolve();
        signal?.addEventListener("abort", () => resolve());
        return promise;
      },
      log: createLog("debug", { write: (text) => logged.push(text) }, clock.now),
    },
    { concurrency: 8, perShop: 4, timeoutMs: 10_000, waitsMs: [2 * MINUTE, 4 * MINUTE], ...changed },
  );
  afterTest(async () => {
    const stopping = sender.stop();
    for (const attempt of unended) attempt.end();
    await stopping;
  });

  /** Lets the sender do everything that it can do now. */
  async function settle(): Promise<void> {
    for (let round = 0; round < 20; round += 1) await new Promise((next) => setImmediate(next));
  }

  /** Queues deliveries about contracts with these numbers. */
  async function queue(shop: Shop, first: number, last: number): Promise<void> {
    const records = Array.from({ length: last - first + 1 }, (_, n) => subscription(first + n));
    await mirror.applyRecords([{ shop, records }], clock.now());
  }

  return {
    sender,
    deliveries,
    clock,
    logged,
    settle,
    endPause: () => endPause(),
    /** Adds a shop with this many deliveries due. */
    async addShop(name: string, count: number): Promise<Shop> {
      const { shop } = await addShop(`${name}.myshopify.com`);
      await webhooks.set(shop.id, { url: "https://hooks.example.com/", topics: ["subscription.created"] }, START);
      await queue(shop, 1, count);
      return shop;
    },
    queue,
    /** From now on, each contract queues a workflow trigger too. */
    async chooseTriggers({ id, domain }: Shop): Promise<void> {
      await app.store.connections.connect(id, "token", TOKENS, [], START);
      await app.store.shops.set(domain, { triggers: TRIGGER_HANDLES });
    },
    setUrl: (shop: Shop, url: string) => webhooks.set(shop.id, { url }, START),
    async wake(): Promise<void> {
      sender.wake();
      await settle();
    },
    /** The attempts since the last time. */
    newAttempts: () => attempts.splice(0),
    log: (shop: Shop) => deliveries.list(shop.id, { limit: 20 }),
    /** From now on, notes how many results each transaction records. */
    noteRecorded(): number[] {
      const { turn } = deliveries;
      const recorded: number[] = [];
      deliveries.turn = (ended, ...rest) => {
        recorded.push(ended.length);
        return turn(ended, ...rest);
      };
      return recorded;
    },
    /** Makes the database fail, until the returned function is called. */
    breakDatabase(): () => void {
      const { dueShops, turn } = deliveries;
      deliveries.dueShops = () => Promise.reject(new Error("disk I/O error"));
      deliveries.turn = () => Promise.reject(new Error("disk I/O error"));
      return () => Object.assign(deliveries, { dueShops, turn });
    },
  };
}

function contracts(attempts: readonly Attempt[]): string[] {
  return attempts.map(({ claim }) => `${claim.shopId} ${JSON.parse(claim.body).data.contract_id.split("/").at(-1)}`);
}

describe("attempts that end one after the other", () => {
  const nextRound = () => new Promise((next) => setImmediate(next));

  test("are recorded together, as long as half of those under way have not ended", async () => {
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
    const { addShop, sender, wake, settle, newAttempts, noteRecorded } = await sendingSlowly();
    for (const name of ["a", "b", "c", "d", "e", "f", "g", "h"]) await addShop(name, 1);
    await wake();
    const recorded = noteRecorded();
    const [first, second] = newAttempts();
    first?.end();
    await nextRound();
    sender.wake();
    await nextRound();
    await nextRound();
    second?.end();
    await settle();
    expect(recorded).toEqual([1, 1]);
  });
});

describe("the order of attempts", () => {
  test("takes shops in turn, and of each shop the oldest delivery first", async () => {
    const { addShop, queue, wake, settle, newAttempts } = await sendingSlowly({ concurrency: 1 });
    const shops = [await addShop("a", 1), await addShop("b", 1), await addShop("c", 1)];
    const order: string[] = [];
    async function attemptAll(count: number): Promise<void> {
      await wake();
      for (let n = 0; n < count; n += 1) {
        const running = newAttempts();
        order.push(...contracts(running));
        for (const attempt of running) attempt.end();
        await settle();
      }
    }
    // Now no endpoint is untried any more.
    await attemptAll(3);
    for (const shop of shops) await queue(shop, 2, 4);
    await attemptAll(9);
    expect(order.slice(3)).toEqual(["1 2", "2 2", "3 2", "1 3", "2 3", "3 3", "1 4", "2 4", "3 4"]);
  });

  test("gives one attempt to an endpoint that was never tried, then as many as a shop may have", async () => {
    const { addShop, wake, settle, newAttempts } = await sendingSlowly();
    await addShop("a", 9);
    await wake();
    const first = newAttempts();
    expect(first).toHaveLength(1);
    first[0]?.end();
    await settle();
    expect(newAttempts()).toHaveLength(4);
  });

  test.each<[string, Partial<AttemptOutcome>, number]>([
    ["times out", { statusCode: null, error: "The endpoint did not answer within 10 seconds.", timedOut: true }, 0],
    ["takes a second", {}, 1_000],
  ])("gives one attempt to an endpoint that twice %s", async (_name, outcome, durationMs) => {
    const { addShop, wake, settle, newAttempts, clock } = await sendingSlowly();
    performance.now = () => clock.ms;
    await addShop("a", 9);
    await wake();
    for (const attempt of newAttempts()) attempt.end();
    await settle();
    const [first, second, ...others] = newAttempts();
    clock.ms += durationMs;
    for (const attempt of [first, second]) attempt?.end({ ...OK, ...outcome });
    await settle();
    // Two attempts still run. They were started when the endpoint was quick.
    expect([others.length, newAttempts().length]).toEqual([2, 0]);
    clock.ms -= durationMs;
    others[0]?.end({ ...OK, timedOut: true });
    await settle();
    expect(newAttempts()).toHaveLength(0);
    others[1]?.end({ ...OK, timedOut: true });
    await settle();
    expect(newAttempts()).toHaveLength(1);
  });
});

describe("a turn", () => {
  test("claims nothing while no slot is free", async () => {
    const { addShop, wake, newAttempts, deliveries, clock } = await sendingSlowly({ concurrency: 1 });
    const shop = await addShop("a", 2);
    await wake();
    expect(newAttempts()).toHaveLength(1);
    let looked = 0;
    const { dueShops } = deliveries;
    deliveries.dueShops = async (now) => {
      looked += 1;
      return dueShops(now);
    };
    await wake();
    expect([looked, newAttempts().length]).toEqual([0, 0]);
    expect(await dueShops(clock.ms)).toEqual([{ shopId: shop.id, kind: "webhook" }]);
  });

  test("records all results of one moment, and claims what comes next, in one transaction", async () => {
    const { addShop, wake, settle, newAttempts, deliveries } = await sendingSlowly();
    await addShop("a", 9);
    await wake();
    for (const attempt of newAttempts()) attempt.end();
    await settle();
    const turns: [number, number][] = [];
    const { turn } = deliveries;
    deliveries.turn = async (results, ...others) => {
      const done = await turn(results, ...others);
      turns.push([done.recorded.length, done.claimed.length]);
      return done;
    };
    for (const attempt of newAttempts()) attempt.end();
    await settle();
    expect(turns).toEqual([[4, 4]]);
  });

  test("makes no transaction if there is nothing to record or to claim", async () => {
    const { sender, wake, deliveries } = await sendingSlowly();
    deliveries.turn = () => Promise.reject(new Error("it was called"));
    await wake();
    expect(sender.failing).toBe(false);
  });

  test("claims with a lease until 5 seconds after the timeout of the attempt", async () => {
    const { addShop, wake, deliveries, clock } = await sendingSlowly();
    const shop = await addShop("a", 1);
    await wake();
    expect(await deliveries.dueShops(clock.ms + 14_999)).toEqual([]);
    expect(await deliveries.dueShops(clock.ms + 15_000)).toEqual([{ shopId: shop.id, kind: "webhook" }]);
  });
});

test("the history has the beginning of each attempt and its duration in whole milliseconds", async () => {
  const { addShop, wake, settle, newAttempts, deliveries, log, clock } = await sendingSlowly();
  performance.now = () => (clock.ms - START) / 10;
  const shop = await addShop("a", 1);
  clock.ms += 7;
  await wake();
  clock.ms += 1_234;
  newAttempts()[0]?.end({ statusCode: 500, error: "The endpoint responded with HTTP 500.", timedOut: false });
  await settle();
  const [{ id, nextAttemptAt } = { id: "", nextAttemptAt: 0 }] = await log(shop);
  expect((await deliveries.show(shop.id, id)).history).toMatchObject([
    { startedAt: START + 7, duration: 123, statusCode: 500 },
  ]);
  expect(nextAttemptAt).toBe(START + 7 + 2 * MINUTE);
});

test("a clock that is set forward makes no second attempt of a delivery at the same time", async () => {
  const { addShop, wake, settle, newAttempts, log, clock } = await sendingSlowly();
  const shop = await addShop("a", 2);
  await wake();
  const [first] = newAttempts();
  first?.end();
  await settle();
  const [second] = newAttempts();
  clock.ms += 60 * MINUTE;
  await wake();
  expect(newAttempts()).toEqual([]);
  second?.end();
  await settle();
  // The result counts, under the lease that replaced the first one.
  expect(await log(shop)).toMatchObject([
    { status: "delivered", attempts: 1 },
    { status: "delivered", attempts: 1 },
  ]);
  expect(newAttempts()).toEqual([]);
});

test("an attempt that fails by a fault of the program is made again after its lease, and is not counted", async () => {
  const { sender, addShop, wake, settle, newAttempts, log, logged, clock } = await sendingSlowly({ concurrency: 1 });
  const shop = await addShop("a", 1);
  const other = await addShop("b", 1);
  await wake();
  newAttempts()[0]?.fail(new Error("the secret cannot be read"));
  await settle();
  expect(logged.join("")).toContain("the secret cannot be read");
  expect(sender.failing).toBe(false);
  // Its slot is free for another shop.
  const [next] = newAttempts();
  expect(next?.claim.shopId).toBe(other.id);
  next?.end();
  await settle();
  expect(await log(shop)).toMatchObject([{ status: "pending", attempts: 0 }]);
  clock.ms += 15_000;
  await wake();
  newAttempts()[0]?.end();
  await settle();
  expect(await log(shop)).toMatchObject([{ status: "delivered", attempts: 1 }]);
});

test("a fault of the program tells nothing of the endpoint", async () => {
  const { addShop, wake, settle, newAttempts } = await sendingSlowly();
  await addShop("a", 9);
  await wake();
  newAttempts()[0]?.fail(new Error("the secret cannot be read"));
  await settle();
  expect(newAttempts()).toHaveLength(1);
});

test("a pace is stored with the next result if its own came too late to be recorded", async () => {
  const { addShop, wake, settle, newAttempts, deliveries, clock } = await sendingSlowly();
  const shop = await addShop("a", 1);
  await wake();
  const [late] = newAttempts();
  clock.ms += 15_000;
  // Another process takes over the delivery, and is killed.
  await deliveries.turn([], new Map([[shop.id, 1]]), clock.ms, clock.ms + 15_000, []);
  late?.end();
  await settle();
  expect(await deliveries.paces()).toEqual([]);
  clock.ms += 15_000;
  await wake();
  newAttempts()[0]?.end();
  await settle();
  expect(await deliveries.paces()).toMatchObject([{ shopId: shop.id, pace: "quick" }]);
});

describe("a clock that was ahead", () => {
  test("before the start delays no first attempt, not even by a minute", async () => {
    const { addShop, wake, newAttempts, clock, logged } = await sendingSlowly();
    clock.ms += 60 * MINUTE;
    await addShop("a", 1);
    clock.ms -= 59 * MINUTE;
    await addShop("b", 1);
    clock.ms -= MINUTE;
    await wake();
    expect(contracts(newAttempts())).toEqual(["1 1", "2 1"]);
    expect(logged.filter((line) => line.includes("a clock that was ahead"))).toHaveLength(1);
  });

  test("and is set back by a minute delays no first attempt, but a retry within the longest wait stays", async () => {
    const { addShop, wake, settle, newAttempts, clock } = await sendingSlowly();
    clock.ms += MINUTE;
    await addShop("a", 1);
    await wake();
    newAttempts()[0]?.end({ statusCode: 500, error: "The endpoint responded with HTTP 500.", timedOut: false });
    await settle();
    await addShop("b", 1);
    clock.ms -= MINUTE;
    await wake();
    await settle();
    expect(contracts(newAttempts())).toEqual(["2 1"]);
  });

  test("and is set back delays no retry", async () => {
    const { addShop, wake, settle, newAttempts, clock } = await sendingSlowly();
    clock.ms += 60 * MINUTE;
    await addShop("a", 1);
    await wake();
    newAttempts()[0]?.end({ statusCode: 500, error: "The endpoint responded with HTTP 500.", timedOut: false });
    await settle();
    clock.ms -= 60 * MINUTE;
    await wake();
    await settle();
    expect(contracts(newAttempts())).toEqual(["1 1"]);
  });
});

describe("an operator reads in the log", () => {
  const failure = { statusCode: 500, error: "The endpoint responded with HTTP 500.", timedOut: false };

  async function failing(waitsMs: number[]) {
    const all = await sendingSlowly({ waitsMs, perShop: 1 });
    const shop = await all.addShop("a", 4);
    const endNext = async (outcome = OK) => {
      await all.wake();
      all.newAttempts()[0]?.end(outcome);
      await all.settle();
    };
    const lines = () =>
      all.logged
        .splice(0)
        .map((line) => JSON.parse(line))
        .filter(({ level }) => level !== "debug")
        .map(({ time: _time, ...rest }) => rest);
    return { ...all, shop, endNext, lines };
  }
  const where = { shop: "a.myshopify.com", topic: "subscription.created", host: "hooks.example.com" };

  test("that an endpoint fails, once, and that it answers again", async () => {
    const { endNext, lines, clock } = await failing([MINUTE, MINUTE]);
    await endNext(failure);
    expect(lines()).toEqual([{ level: "warn", message: "the endpoint fails", ...where, error: failure.error }]);
    await endNext(failure);
    expect(lines()).toEqual([]);
    clock.ms += MINUTE;
    await endNext();
    expect(lines()).toEqual([{ level: "info", message: "the endpoint answers again", ...where }]);
    await endNext();
    expect(lines()).toEqual([]);
  });

  test("that a new URL of an endpoint fails too", async () => {
    const { shop, endNext, lines, setUrl } = await failing([]);
    await endNext(failure);
    expect(lines()[0]).toMatchObject({ message: "the endpoint fails", host: "hooks.example.com" });
    await setUrl(shop, "https://new.example.com/");
    // This delivery was claimed with the old URL.
    await endNext(failure);
    await endNext(failure);
    const messages = lines().filter(({ message }) => message === "the endpoint fails");
    expect(messages).toMatchObject([{ host: "new.example.com" }]);
  });

  test("of each delivery that is dead, but nothing of a result that is not recorded yet", async () => {
    const { endNext, lines, breakDatabase, endPause, settle } = await failing([]);
    await endNext(failure);
    const dead = {
      level: "warn",
      message: "a delivery is dead: its last attempt failed",
      ...where,
      delivery: expect.stringMatching(/^whd_/),
      error: failure.error,
    };
    expect(lines()).toMatchObject([{ message: "the endpoint fails" }, dead]);
    const repair = breakDatabase();
    await endNext(failure);
    expect(lines().map(({ message }) => message)).not.toContain(dead.message);
    repair();
    endPause();
    await settle();
    expect(lines()).toEqual([dead]);
  });

  test("nothing of a result that came after another process took over the delivery", async () => {
    const { shop, deliveries, wake, newAttempts, settle, lines, clock } = await failing([]);
    await wake();
    const [attempt] = newAttempts();
    clock.ms += 15_000;
    await deliveries.turn([], new Map([[shop.id, 4]]), clock.ms, clock.ms + 15_000, []);
    attempt?.end(failure);
    await settle();
    expect(lines()).toEqual([]);
  });
});

test("an attempt that another process made meanwhile counts", async () => {
  const { addShop, deliveries, wake, settle, newAttempts, clock, log } = await sendingSlowly();
  const shop = await addShop("a", 2);
  await wake();
  newAttempts()[0]?.end();
  await settle();
  const [slow] = newAttempts();
  clock.ms += 15_000;
  const { claimed } = await deliveries.turn([], new Map([[shop.id, 1]]), clock.ms, clock.ms + 15_000, []);
  const outcome = { statusCode: 500, error: "The endpoint responded with HTTP 500." };
  const failed = claimed.map((claim) => ({ claim, outcome, startedAt: clock.ms, duration: 1 }));
  await deliveries.turn(failed, new Map(), clock.ms, clock.ms, [MINUTE]);
  clock.ms += MINUTE;
  // The attempt that runs goes on under a new lease.
  await wake();
  expect(newAttempts()).toEqual([]);
  slow?.end();
  await settle();
  expect(await log(shop)).toMatchObject([
    { status: "delivered", attempts: 2 },
    { status: "delivered", attempts: 1 },
  ]);
});

test("a restart does not forget that an endpoint hangs", async () => {
  const first = await sendingSlowly();
  const shop = await first.addShop("a", 9);
  await first.wake();
  first.newAttempts()[0]?.end();
  await first.settle();
  for (const attempt of first.newAttempts()) attempt.end({ ...OK, timedOut: true });
  await first.settle();
  expect(await first.deliveries.paces()).toMatchObject([
    { shopId: shop.id, pace: "slow", timedOutAt: expect.any(Number) },
  ]);
});

test("the platform's answers to workflow triggers tell nothing of the endpoint", async () => {
  const { addShop, chooseTriggers, queue, wake, settle, newAttempts, deliveries } = await sendingSlowly();
  const shop = await addShop("a", 1);
  await chooseTriggers(shop);
  await queue(shop, 2, 3);
  /** Ends the attempts that run. @returns the kinds of those that begin then */
  const kindsAfter = async (outcome: AttemptOutcome) => {
    for (const attempt of running) attempt.end(outcome);
    await settle();
    running = newAttempts();
    return running.map(({ claim }) => claim.kind);
  };
  await wake();
  let running = newAttempts();
  expect(await kindsAfter(OK)).toEqual(["webhook", "webhook"]);
  expect(await kindsAfter(OK)).toEqual(["trigger"]);
  expect(await kindsAfter({ ...OK, timedOut: true })).toEqual(["trigger"]);
  await queue(shop, 4, 5);
  expect(await kindsAfter({ ...OK, timedOut: true })).toEqual(["webhook", "webhook"]);
  expect(await deliveries.paces()).toMatchObject([{ shopId: shop.id, pace: "quick", timedOutAt: null }]);
});

describe("a database that fails", () => {
  test("when due deliveries are read makes the sender failing, until it works again", async () => {
    const { sender, addShop, wake, settle, newAttempts, endPause, breakDatabase } = await sendingSlowly();
    await addShop("a", 1);
    const repair = breakDatabase();
    await wake();
    expect([sender.failing, newAttempts().length]).toEqual([true, 0]);
    repair();
    await wake();
    expect([sender.failing, newAttempts().length]).toEqual([true, 0]);
    endPause();
    await settle();
    expect([sender.failing, newAttempts().length]).toEqual([false, 1]);
  });

  test("keeps results for the next turn, which records each once, in order", async () => {
    const { addShop, wake, settle, newAttempts, endPause, deliveries, log, logged } = await sendingSlowly();
    const shop = await addShop("a", 5);
    await wake();
    for (const attempt of newAttempts()) attempt.end();
    await settle();
    const running = newAttempts();
    const { turn } = deliveries;
    const failure = Promise.withResolvers<never>();
    deliveries.turn = () => failure.promise;
    for (const attempt of running.slice(0, 2)) attempt.end();
    await settle();
    // These end while the turn that fails still records the others.
    for (const attempt of running.slice(2)) attempt.end();
    await settle();
    failure.reject(new Error("disk I/O error"));
    await settle();
    expect(logged.filter((line) => line.includes("disk I/O error")).map((line) => JSON.parse(line).kept)).toEqual([4]);
    const recorded: string[] = [];
    deliveries.turn = async (results, ...others) => {
      recorded.push(...results.map(({ claim }) => claim.id));
      return turn(results, ...others);
    };
    endPause();
    await settle();
    expect(recorded).toEqual(running.map(({ claim }) => claim.id));
    expect((await log(shop)).map(({ status, attempts }) => `${status} ${attempts}`)).toEqual(
      Array<string>(5).fill("delivered 1"),
    );
  });
});

describe("stop", () => {
  async function running() {
    const all = await sendingSlowly();
    const shop = await all.addShop("a", 9);
    await all.wake();
    for (const attempt of all.newAttempts()) attempt.end();
    await all.settle();
    return { ...all, shop, attempts: all.newAttempts() };
  }

  function countDelivered(deliveries: { status: string }[]): number {
    return deliveries.filter(({ status }) => status === "delivered").length;
  }

  test("waits for the attempts that run, records each as it ends, and claims nothing more", async () => {
    const { sender, shop, attempts, settle, newAttempts, log } = await running();
    let stopped = false;
    const stopping = sender.stop().then(() => {
      stopped = true;
    });
    for (const [index, attempt] of attempts.entries()) {
      expect([stopped, countDelivered(await log(shop))]).toEqual([false, 1 + index]);
      attempt.end();
      await settle();
    }
    await stopping;
    expect(countDelivered(await log(shop))).toBe(5);
    expect(newAttempts()).toEqual([]);
  });

  test("tries once more to record results that could not be recorded", async () => {
    const { sender, shop, attempts, settle, breakDatabase, log } = await running();
    const repair = breakDatabase();
    for (const attempt of attempts) attempt.end();
    await settle();
    repair();
    await sender.stop();
    expect(countDelivered(await log(shop))).toBe(5);
  });

  test("ends although the database fails", async () => {
    const { sender, attempts, breakDatabase } = await running();
    breakDatabase();
    for (const attempt of attempts) attempt.end();
    await sender.stop();
    expect(sender.failing).toBe(true);
  });
});
