import { describe, expect, test } from "bun:test";
import { SdsError } from "../../src/domain/error.ts";
import type { Shop } from "../../src/domain/shop.ts";
import { createLog } from "../../src/log.ts";
import { PlatformError } from "../../src/shopify/api/platform-error.ts";
import { createInboxProcessor } from "../../src/shopify/inbox/processor.ts";
import type { InboxItem } from "../../src/store/inbox.ts";
import { START, testApp } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";

const SECOND = 1_000;
const MINUTE = 60_000;
const DOWN = new PlatformError("unavailable", "the platform answered HTTP 503");

/** One call of the handler, which ends when the test says so. */
interface Call {
  domain: string;
  subject: string;
  items: readonly InboxItem[];
  /** Removes the items from the inbox, as the real handler does. */
  succeed(): Promise<void>;
  fail(error: Error): void;
}

/** A processor with a real inbox and a handler that waits for the test. */
async function processing() {
  const { app, clock, addShop } = await testApp();
  const { inbox, shops, mirror } = app.store;
  let calls: Call[] = [];
  const unended = new Set<Call>();
  const logged: string[] = [];

  async function handle(shop: Shop, items: readonly InboxItem[]): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const inboxNumbers = items.map(({ number }) => number);
    const call: Call = {
      domain: shop.domain.replace(".myshopify.com", ""),
      subject: items[0]?.subject ?? "",
      items,
      async succeed() {
        await mirror.applyRecords([{ shop, records: [], inboxNumbers }], clock.now());
        resolve();
      },
      fail: reject,
    };
    calls.push(call);
    unended.add(call);
    return promise.finally(() => unended.delete(call));
  }

  let pause: PromiseWithResolvers<void> | undefined;
  const processor = createInboxProcessor({
    inbox,
    shops,
    handle,
    now: clock.now,
    clock: clock.monotonic,
    sleep: async () => {
      pause = Promise.withResolvers<void>();
      await pause.promise;
    },
    log: createLog("warn", { write: (text) => logged.push(text) }, clock.now),
  });
  afterTest(async () => {
    pause?.resolve();
    const stopping = processor.stop();
    for (const call of unended) call.fail(new Error("the test ended"));
    await stopping;
  });

  /** Lets the processor start everything that it may start now. */
  async function settle(): Promise<void> {
    for (let round = 0; round < 20; round += 1) await new Promise((next) => setImmediate(next));
  }

  return {
    store: app.store,
    processor,
    clock,
    logged,
    settle,
    addShop: async (name: string) => (await addShop(`${name}.myshopify.com`)).shop,
    /** Puts one item about each subject into the inbox. */
    async receive(shop: Shop, subjects: readonly string[], needsPlatform = true, waitMs = 0): Promise<void> {
      const receipts = subjects.map((subject) => {
        return {
          shopId: shop.id,
          webhookId: null,
          topic: "orders/create",
          subject,
          needsPlatform,
          body: "{}",
          triggeredAt: START,
          waitMs,
        };
      });
      await inbox.receive(receipts, clock.now());
    },
    async wake(): Promise<void> {
      processor.wake();
      await settle();
    },
    endPause: () => pause?.resolve(),
    /** The calls since the last time. */
    newCalls(): Call[] {
      const seen = calls;
      calls = [];
      return seen;
    },
    callCount: () => calls.length,
    async waits(shop: Shop): Promise<(number | null)[]> {
      const entries = await inbox.list(shop.id, { limit: 100 });
      return entries
        .map(({ nextAttemptAt }) => (nextAttemptAt === null ? null : nextAttemptAt - clock.ms))
        .toReversed();
    },
  };
}

function numbered(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, n) => `${name}${n + 1}`);
}

function bySubject(calls: readonly Call[]): string[] {
  return calls.map(({ domain, subject }) => `${domain} ${subject}`);
}

function countByShop(calls: readonly Call[]): Record<string, number> {
  return Object.fromEntries(
    [...Map.groupBy(calls, ({ domain }) => domain)].map(([domain, group]) => [domain, group.length]),
  );
}

describe("shops take turns", () => {
  test("and each starts one subject before any starts a second one", async () => {
    const { addShop, receive, wake, newCalls } = await processing();
    for (const name of ["a", "b", "c"]) await receive(await addShop(name), ["s1", "s2"]);
    await wake();
    expect(bySubject(newCalls())).toEqual(["a s1", "b s1", "c s1", "a s2", "b s2", "c s2"]);
  });

  test("and the shop after the one served last comes next", async () => {
    const { addShop, receive, wake, settle, newCalls } = await processing();
    for (const name of ["a", "b", "c"]) await receive(await addShop(name), numbered("s", 100), false);
    await wake();
    const running = newCalls();
    expect(countByShop(running)).toEqual({ a: 43, b: 43, c: 42 });
    const next: string[] = [];
    for (const call of running.slice(0, 6)) {
      await call.succeed();
      await settle();
      next.push(...newCalls().map(({ domain }) => domain));
    }
    expect(next).toEqual(["c", "a", "b", "c", "a", "b"]);
    for (const call of running) await call.succeed();
  });

  test("and a shop with nothing that may start is skipped", async () => {
    const { addShop, receive, wake, settle, newCalls } = await processing();
    const [a, b] = [await addShop("a"), await addShop("b")];
    await receive(a, numbered("s", 10));
    await receive(b, ["s1"]);
    await wake();
    const running = newCalls();
    expect(countByShop(running)).toEqual({ a: 8, b: 1 });
    await running[0]?.succeed();
    await settle();
    expect(bySubject(newCalls())).toEqual(["a s9"]);
  });
});

describe("the most that runs at once is", () => {
  test("8 subjects of one shop that need the platform, and 128 of all shops", async () => {
    const { addShop, receive, wake, newCalls } = await processing();
    for (let n = 0; n < 17; n += 1) await receive(await addShop(`shop${n}`), numbered("s", 9));
    await wake();
    const counts = countByShop(newCalls());
    expect(Object.values(counts).reduce((sum, count) => sum + count, 0)).toBe(128);
    expect(Math.max(...Object.values(counts))).toBe(8);
    expect(Object.keys(counts)).toHaveLength(17);
  });

  test("64 subjects of one shop that need no platform, and 128 of all shops", async () => {
    const { addShop, receive, wake, newCalls } = await processing();
    for (const name of ["a", "b"]) await receive(await addShop(name), numbered("quick", 70), false);
    await wake();
    expect(countByShop(newCalls())).toEqual({ a: 64, b: 64 });
    await receive(await addShop("c"), ["quick"], false);
    await wake();
    expect(newCalls()).toEqual([]);
  });

  test("64 subjects that need no platform, beside those that need it", async () => {
    const { addShop, receive, wake, newCalls } = await processing();
    const shop = await addShop("a");
    await receive(shop, numbered("quick", 70), false);
    await receive(shop, numbered("asking", 10));
    await wake();
    const running = newCalls();
    expect(running.filter(({ subject }) => subject.startsWith("quick"))).toHaveLength(64);
    expect(running.filter(({ subject }) => subject.startsWith("asking"))).toHaveLength(8);
  });

  test("1 subject of a shop whose platform took more than 5 seconds, until it is quick again", async () => {
    const { addShop, receive, wake, settle, newCalls, clock } = await processing();
    const shop = await addShop("a");
    const { now } = performance;
    afterTest(() => {
      performance.now = now;
    });
    performance.now = () => clock.ms;
    await receive(shop, numbered("s", 20));
    await wake();
    const running = newCalls();
    expect(running).toHaveLength(8);
    await receive(shop, ["quick"], false);
    await wake();
    const [quick] = newCalls();
    clock.ms += 5 * SECOND;
    await running.shift()?.succeed();
    await settle();
    const [second, ...others] = newCalls();
    expect([second === undefined, others]).toEqual([false, []]);
    clock.ms += 1;
    for (const call of running) await call.succeed();
    await settle();
    // The second subject, which started last, still runs. The time of a subject that does not need the platform changes
    // nothing.
    clock.ms -= 5 * SECOND;
    await quick?.succeed();
    await settle();
    clock.ms += 5 * SECOND;
    expect(newCalls()).toEqual([]);
    await second?.succeed();
    await settle();
    expect(newCalls()).toHaveLength(8);
  });
});

describe("platform webhooks about one subject", () => {
  test("that wait together are processed together, the oldest first", async () => {
    const { addShop, receive, wake, newCalls } = await processing();
    const shop = await addShop("a");
    await receive(shop, ["s", "other", "s", "s"]);
    await wake();
    const numbers = newCalls().map(({ subject, items }) => [subject, items.map(({ number }) => number)]);
    expect(numbers).toEqual([
      ["s", [1, 3, 4]],
      ["other", [2]],
    ]);
  });

  test("are taken together when the first of them is due, those that failed too", async () => {
    const { addShop, receive, wake, settle, newCalls, clock } = await processing();
    const shop = await addShop("a");
    await receive(shop, ["s"]);
    await wake();
    newCalls()[0]?.fail(new SdsError("bad_record", "the record is refused"));
    await settle();
    await receive(shop, ["s"], true, 3 * SECOND);
    clock.ms += SECOND;
    await receive(shop, ["s"], true, 3 * SECOND);
    clock.ms += 2 * SECOND - 1;
    await wake();
    expect(newCalls()).toEqual([]);
    clock.ms += 1;
    await wake();
    expect(newCalls().map(({ items }) => items.map(({ number }) => number))).toEqual([[1, 2, 3]]);
  });

  test("wait after a start as long as before it, but not as long as a clock that was ahead planned", async () => {
    const { addShop, receive, wake, newCalls, clock } = await processing();
    const shop = await addShop("a");
    await receive(shop, ["soon"], true, 30 * SECOND);
    clock.step(SECOND);
    await receive(shop, ["ahead"], true, 30 * SECOND);
    clock.step(-SECOND);
    // The first turn of the processor.
    await wake();
    expect(bySubject(newCalls())).toEqual(["a ahead"]);
    clock.ms += 30 * SECOND;
    await wake();
    expect(bySubject(newCalls())).toEqual(["a soon"]);
  });

  test("that arrive while it is under way wait for its end", async () => {
    const { addShop, receive, wake, settle, newCalls } = await processing();
    const shop = await addShop("a");
    await receive(shop, ["s"]);
    await wake();
    const [first] = newCalls();
    await receive(shop, ["s"]);
    await wake();
    expect(newCalls()).toEqual([]);
    await first?.succeed();
    await settle();
    expect(newCalls().map(({ items }) => items.map(({ number }) => number))).toEqual([[2]]);
  });

  test("do not delay other subjects, however many wait", async () => {
    const { addShop, receive, wake, newCalls } = await processing();
    const shop = await addShop("a");
    await receive(shop, ["s"]);
    await wake();
    newCalls();
    await receive(shop, [...Array<string>(600).fill("s"), "other"]);
    await wake();
    expect(bySubject(newCalls())).toEqual(["a other"]);
  });

  test("of one shop do not delay those of another shop about the same subject", async () => {
    const { addShop, receive, wake, newCalls } = await processing();
    for (const name of ["a", "b"]) await receive(await addShop(name), ["s"]);
    await wake();
    expect(bySubject(newCalls())).toEqual(["a s", "b s"]);
  });

  test("are processed one at a time, even if only some of them need the platform", async () => {
    const { addShop, receive, wake, settle, newCalls } = await processing();
    const shop = await addShop("a");
    await receive(shop, ["other", "s"], false);
    await receive(shop, ["s"]);
    await wake();
    const [other, first, ...more] = newCalls();
    expect([other?.subject, first?.subject, more]).toEqual(["other", "s", []]);
    await first?.succeed();
    await settle();
    expect(newCalls().map(({ items }) => items.map(({ number }) => number))).toEqual([[2]]);
  });

  test("are not processed if they left the inbox after they were found", async () => {
    const { store, addShop, receive, wake, settle, newCalls } = await processing();
    const shop = await addShop("a");
    await receive(shop, numbered("s", 9));
    await wake();
    const running = newCalls();
    await store.mirror.applyRecords([{ shop, records: [], inboxNumbers: [9] }], START);
    await running[0]?.succeed();
    await settle();
    expect(newCalls()).toEqual([]);
  });
});

describe("a platform that fails", () => {
  async function failing() {
    const all = await processing();
    const shop = await all.addShop("a");
    await all.receive(shop, numbered("s", 30));
    await all.wake();
    const running = all.newCalls();
    for (const call of running) call.fail(DOWN);
    await all.settle();
    return { ...all, shop };
  }

  test("is not queried for 5 seconds, and then for one subject", async () => {
    const all = await processing();
    const shop = await all.addShop("a");
    await all.receive(shop, ["s1"]);
    await all.wake();
    all.newCalls()[0]?.fail(DOWN);
    await all.settle();
    await all.receive(shop, numbered("t", 9));
    all.clock.ms += 5 * SECOND - 1;
    await all.wake();
    expect(all.newCalls()).toEqual([]);
    all.clock.ms += 1;
    await all.wake();
    expect(all.newCalls()).toHaveLength(1);
  });

  test("is not queried for twice as long after each failure, up to a minute", async () => {
    const { addShop, receive, wake, settle, newCalls, callCount, clock } = await processing();
    const shop = await addShop("a");
    await receive(shop, ["first"]);
    await wake();
    const rests: number[] = [];
    for (let failures = 1; failures <= 6; failures += 1) {
      const [single, ...more] = newCalls();
      expect([single === undefined, more]).toEqual([false, []]);
      single?.fail(DOWN);
      await settle();
      await receive(shop, numbered(`after${failures}-`, 2));
      const began = clock.ms;
      for (await wake(); callCount() === 0 && clock.ms < began + 2 * MINUTE; await wake()) clock.ms += SECOND;
      rests.push((clock.ms - began) / SECOND);
    }
    expect(rests).toEqual([5, 10, 20, 40, 60, 60]);
  });

  test("is queried for several subjects again as soon as it answers", async () => {
    const { clock, wake, settle, newCalls } = await failing();
    clock.ms += MINUTE;
    await wake();
    const [single, ...more] = newCalls();
    expect(more).toEqual([]);
    await single?.succeed();
    await settle();
    expect(newCalls()).toHaveLength(8);
  });

  test("delays neither another shop nor subjects that do not need the platform", async () => {
    const { shop, addShop, receive, wake, settle, newCalls } = await failing();
    await receive(shop, ["quick"], false);
    await receive(await addShop("b"), ["s1"]);
    await wake();
    const [other, quick, ...more] = newCalls();
    expect([other, quick].map((call) => `${call?.domain} ${call?.subject}`)).toEqual(["b s1", "a quick"]);
    await quick?.succeed();
    await settle();
    // The platform did not answer: the shop still waits.
    await receive(shop, ["s31"]);
    await wake();
    expect([more, newCalls()]).toEqual([[], []]);
  });

  test("may refuse one subject without a rest for the others", async () => {
    const { addShop, receive, wake, settle, newCalls } = await processing();
    await receive(await addShop("a"), numbered("s", 9));
    await wake();
    newCalls()[0]?.fail(new PlatformError("refused", "no such field"));
    await settle();
    expect(bySubject(newCalls())).toEqual(["a s9"]);
  });
});

describe("a platform webhook that fails", () => {
  const REFUSED = new SdsError("bad_record", "the record is refused");

  test("is attempted again after 5 seconds, then after longer waits, and stays as failed after 11 attempts", async () => {
    const { store, addShop, receive, wake, settle, newCalls, waits, clock, logged } = await processing();
    const shop = await addShop("a");
    await receive(shop, ["s"]);
    const planned: (number | null)[] = [];
    for (let attempt = 1; attempt <= 11; attempt += 1) {
      await wake();
      const [call, ...more] = newCalls();
      expect(more).toEqual([]);
      call?.fail(REFUSED);
      await settle();
      const [wait = null] = await waits(shop);
      planned.push(wait);
      clock.ms += (wait ?? 0) - 1;
      await wake();
      expect(newCalls()).toEqual([]);
      clock.ms += 1;
    }
    const minutes = [1, 5, 15, 30, 60, 120, 240, 480].map((each) => each * MINUTE);
    expect(planned).toEqual([5 * SECOND, 15 * SECOND, ...minutes, null]);
    expect(await store.inbox.list(shop.id, { limit: 1 })).toMatchObject([
      { status: "failed", attempts: 11, error: "the record is refused" },
    ]);
    expect(logged.map((line) => line.includes("it stays in the inbox as failed"))).toEqual([
      ...Array<boolean>(10).fill(false),
      true,
    ]);
    clock.ms += 24 * 60 * MINUTE;
    await wake();
    expect(newCalls()).toEqual([]);
  });

  test("waits no longer than the newest webhook about its subject must wait", async () => {
    const { addShop, receive, wake, settle, newCalls, waits, clock } = await processing();
    const shop = await addShop("a");
    const failAll = async () => {
      await wake();
      for (const call of newCalls()) call.fail(REFUSED);
      await settle();
    };
    await receive(shop, ["s"]);
    for (const ms of [0, 5 * SECOND, 15 * SECOND]) {
      clock.ms += ms;
      await failAll();
    }
    expect(await waits(shop)).toEqual([MINUTE]);
    clock.ms += MINUTE;
    await receive(shop, ["s"]);
    await failAll();
    expect(await waits(shop)).toEqual([5 * SECOND, 5 * SECOND]);
  });

  test("during a stop is not counted as an attempt, and nothing more starts", async () => {
    const { store, processor, addShop, receive, wake, newCalls } = await processing();
    const shop = await addShop("a");
    await receive(shop, numbered("s", 9));
    await wake();
    const running = newCalls();
    const stopping = processor.stop();
    for (const call of running) call.fail(DOWN);
    await stopping;
    expect(newCalls()).toEqual([]);
    const entries = await store.inbox.list(shop.id, { limit: 20 });
    expect(entries.map(({ status, attempts }) => `${status} ${attempts}`)).toEqual(Array<string>(9).fill("waiting 0"));
  });
});

test("due webhooks are read 500 at a time", async () => {
  const { store, addShop, receive, wake } = await processing();
  await receive(await addShop("a"), numbered("s", 600));
  const limits: number[] = [];
  const { due } = store.inbox;
  store.inbox.due = async (queue, now, limit) => {
    limits.push(limit);
    return due(queue, now, limit);
  };
  await wake();
  expect(limits).toEqual([500]);
});

test("a stop during a turn starts nothing more, and no other turn", async () => {
  const { store, processor, addShop, receive, wake, settle, newCalls } = await processing();
  await receive(await addShop("a"), numbered("s", 4));
  const { due, dueQueues } = store.inbox;
  let looked = 0;
  store.inbox.dueQueues = async (now) => {
    looked += 1;
    return dueQueues(now);
  };
  let stopping: Promise<void> | undefined;
  store.inbox.due = async (queue, now, limit) => {
    stopping ??= processor.stop();
    return due(queue, now, limit);
  };
  await wake();
  const [first, ...more] = newCalls();
  expect([first?.subject, more]).toEqual(["s1", []]);
  await first?.succeed();
  await settle();
  await stopping;
  expect([looked, newCalls()]).toEqual([1, []]);
});

test("stop waits for what is under way", async () => {
  const { processor, addShop, receive, wake, settle, newCalls } = await processing();
  await receive(await addShop("a"), ["s"]);
  await wake();
  let stopped = false;
  const stopping = processor.stop().then(() => {
    stopped = true;
  });
  await settle();
  expect([stopped, processor.working]).toEqual([false, true]);
  await newCalls()[0]?.succeed();
  await stopping;
  expect(processor.working).toBe(false);
});

describe("a database that fails", () => {
  test("when due webhooks are read is logged, and they are processed after a pause", async () => {
    const { store, addShop, receive, wake, settle, newCalls, endPause, logged } = await processing();
    await receive(await addShop("a"), ["s"]);
    const { dueQueues } = store.inbox;
    store.inbox.dueQueues = () => Promise.reject(new Error("disk I/O error"));
    await wake();
    store.inbox.dueQueues = dueQueues;
    await wake();
    expect(newCalls()).toEqual([]);
    expect(logged.join("")).toContain("disk I/O error");
    endPause();
    await settle();
    expect(newCalls()).toHaveLength(1);
  });

  test("after a webhook failed is logged, and the webhook is processed after a pause", async () => {
    const { store, addShop, receive, wake, settle, newCalls, endPause, logged } = await processing();
    await receive(await addShop("a"), ["s"]);
    await wake();
    const { postpone } = store.inbox;
    store.inbox.postpone = () => Promise.reject(new Error("database is locked"));
    newCalls()[0]?.fail(new SdsError("bad_record", "the record is refused"));
    await settle();
    store.inbox.postpone = postpone;
    expect(newCalls()).toEqual([]);
    expect(logged.join("")).toContain("database is locked");
    endPause();
    await settle();
    expect(newCalls()).toHaveLength(1);
  });
});

test("what was received or postponed while the clock was ahead is processed when the clock was set back", async () => {
  const { processor, clock, logged, addShop, receive, wake, newCalls } = await processing();
  const shop = await addShop("a");
  const hour = 60 * MINUTE;
  clock.step(24 * hour);
  await receive(shop, ["postponed"]);
  await wake();
  newCalls()[0]?.fail(new Error("no"));
  await eventually(() => !processor.working);
  await receive(shop, ["received"]);
  clock.step(-24 * hour);
  await wake();
  expect(
    newCalls()
      .map(({ subject }) => subject)
      .toSorted(),
  ).toEqual(["postponed", "received"]);
  expect(logged.join("")).toContain("planned by a clock that was ahead are due now");
});

test("what a clock that was ahead left in the inbox is processed after a start", async () => {
  const { clock, addShop, receive, wake, newCalls } = await processing();
  const shop = await addShop("a");
  clock.step(60 * MINUTE);
  await receive(shop, ["received"]);
  clock.step(-60 * MINUTE);
  await wake();
  expect(newCalls()).toHaveLength(1);
});

test("every webhook is processed once, although others arrive meanwhile", async () => {
  const { store, processor, addShop, receive, newCalls } = await processing();
  const shop = await addShop("a");
  const handled: number[] = [];
  for (let n = 0; n < 30; n += 1) {
    await receive(shop, [`s${n % 4}`, `t${n % 7}`], n % 2 === 0);
    processor.wake();
    await new Promise((next) => setImmediate(next));
    for (const call of newCalls()) {
      handled.push(...call.items.map(({ number }) => number));
      await call.succeed();
    }
  }
  await eventually(async () => {
    for (const call of newCalls()) {
      handled.push(...call.items.map(({ number }) => number));
      await call.succeed();
    }
    return !processor.working;
  });
  expect(handled.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, n) => n + 1));
  expect(await store.inbox.count(shop.id)).toEqual({ waiting: 0, failed: 0 });
});
