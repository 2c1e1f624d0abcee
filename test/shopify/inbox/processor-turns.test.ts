import { describe, expect, test } from "bun:test";
import { START } from "../../support/app.ts";
import { eventually } from "../../support/eventually.ts";
import {
  bySubject,
  countByShop,
  numbered,
  numbersOf,
  processing,
  processingOf,
  REFUSED,
  SECOND,
} from "./slow-processing.ts";

describe("shops take turns", () => {
  test("and each shop starts one subject before any shop starts a second one", async () => {
    const { receive, nextCalls } = await processing();
    for (const name of ["a", "b", "c"]) await receive(name, ["s1", "s2"]);
    expect(bySubject(await nextCalls())).toEqual(["a s1", "b s1", "c s1", "a s2", "b s2", "c s2"]);
  });

  test("and the shop after the one served last comes next", async () => {
    const { receive, nextCalls, settledCalls } = await processing();
    for (const name of ["a", "b", "c"]) await receive(name, numbered("s", 100), false);
    const running = await nextCalls();
    expect(countByShop(running)).toEqual({ a: 43, b: 43, c: 42 });
    const next: string[] = [];
    for (const call of running.slice(0, 6)) {
      await call.succeed();
      next.push(...(await settledCalls()).map(({ domain }) => domain));
    }
    expect(next).toEqual(["c", "a", "b", "c", "a", "b"]);
    for (const call of running) await call.succeed();
  });

  test("and a shop with nothing that may start is skipped", async () => {
    const { receive, nextCalls, settledCalls } = await processing();
    await receive("a", numbered("s", 34));
    await receive("b", ["s1"]);
    const running = await nextCalls();
    expect(countByShop(running)).toEqual({ a: 32, b: 1 });
    await running[0]?.succeed();
    expect(bySubject(await settledCalls())).toEqual(["a s33"]);
  });
});

describe("the limit of subjects under way is", () => {
  test("32 subjects of one shop that need the platform, and 256 of all shops", async () => {
    const { receive, nextCalls } = await processing();
    await receive("alone", numbered("s", 33));
    expect(await nextCalls()).toHaveLength(32);
    for (let n = 0; n < 9; n += 1) await receive(`shop${n}`, numbered("s", 33));
    const counts = countByShop(await nextCalls());
    expect(Object.values(counts).reduce((sum, count) => sum + count, 0)).toBe(256 - 32);
    expect(Object.keys(counts)).toHaveLength(9);
  });

  test("64 subjects of one shop that need no platform, and 128 of all shops", async () => {
    const { receive, nextCalls } = await processing();
    for (const name of ["a", "b"]) await receive(name, numbered("quick", 70), false);
    expect(countByShop(await nextCalls())).toEqual({ a: 64, b: 64 });
    await receive("c", ["quick"], false);
    expect(await nextCalls()).toEqual([]);
  });

  test("64 subjects that need no platform, beside those that need it", async () => {
    const { receive, nextCalls } = await processing();
    await receive("a", numbered("quick", 70), false);
    await receive("a", numbered("asking", 40));
    const running = await nextCalls();
    expect(running.filter(({ subject }) => subject.startsWith("quick"))).toHaveLength(64);
    expect(running.filter(({ subject }) => subject.startsWith("asking"))).toHaveLength(32);
  });

  test("1 subject that needs the platform of a shop whose platform is slow, until it is faster", async () => {
    const { shopOf, receive, slowShops, nextCalls, settledCalls } = await processing();
    slowShops.add((await shopOf("a")).id);
    await receive("a", numbered("s", 70));
    await receive("a", ["quick"], false);
    await receive("b", numbered("s", 3));
    const running = await nextCalls();
    expect(countByShop(running)).toEqual({ a: 2, b: 3 });
    slowShops.clear();
    await running.find(({ subject }) => subject === "s1")?.succeed();
    expect(await settledCalls()).toHaveLength(32);
  });
});

describe("platform webhooks about one subject", () => {
  test("that wait together are processed together, the oldest first", async () => {
    const { newCalls } = await processingOf(["s", "other", "s", "s"]);
    const numbers = newCalls().map(({ subject, items }) => [subject, items.map(({ number }) => number)]);
    expect(numbers).toEqual([
      ["s", [1, 3, 4]],
      ["other", [2]],
    ]);
  });

  test("are processed together when the first is due, also those that failed", async () => {
    const { receive, settle, newCalls, clock, nextCalls } = await processingOf(["s"]);
    newCalls()[0]?.fail(REFUSED);
    await settle();
    await receive("a", ["s"], true, 3 * SECOND);
    clock.ms += SECOND;
    await receive("a", ["s"], true, 3 * SECOND);
    clock.ms += 2 * SECOND - 1;
    expect(await nextCalls()).toEqual([]);
    clock.ms += 1;
    expect(numbersOf(await nextCalls())).toEqual([[1, 2, 3]]);
  });

  test("keep their wait over a restart, unless a clock that was ahead planned it", async () => {
    const { receive, clock, nextCalls } = await processing();
    await receive("a", ["soon"], true, 30 * SECOND);
    clock.step(SECOND);
    await receive("a", ["ahead"], true, 30 * SECOND);
    clock.step(-SECOND);
    // The first turn of the processor.
    expect(bySubject(await nextCalls())).toEqual(["a ahead"]);
    clock.ms += 30 * SECOND;
    expect(bySubject(await nextCalls())).toEqual(["a soon"]);
  });

  test("that arrive while it is under way wait for its end", async () => {
    const { receive, newCalls, nextCalls, settledCalls } = await processingOf(["s"]);
    const [first] = newCalls();
    await receive("a", ["s"]);
    expect(await nextCalls()).toEqual([]);
    await first?.succeed();
    expect(numbersOf(await settledCalls())).toEqual([[2]]);
  });

  test("do not delay other subjects, however many wait", async () => {
    const { receive, newCalls, nextCalls } = await processingOf(["s"]);
    newCalls();
    await receive("a", [...Array<string>(600).fill("s"), "other"]);
    expect(bySubject(await nextCalls())).toEqual(["a other"]);
  });

  test("of one shop do not delay those of another shop about the same subject", async () => {
    const { receive, nextCalls } = await processing();
    for (const name of ["a", "b"]) await receive(name, ["s"]);
    expect(bySubject(await nextCalls())).toEqual(["a s", "b s"]);
  });

  test("are processed one at a time, even if only some of them need the platform", async () => {
    const { receive, nextCalls, settledCalls } = await processing();
    await receive("a", ["other", "s"], false);
    await receive("a", ["s"]);
    const [other, first, ...more] = await nextCalls();
    expect([other?.subject, first?.subject, more]).toEqual(["other", "s", []]);
    await first?.succeed();
    expect(numbersOf(await settledCalls())).toEqual([[2]]);
  });

  test("are not processed if they left the inbox after they were found", async () => {
    const { store, shopOf, newCalls, settledCalls } = await processingOf(numbered("s", 9));
    const running = newCalls();
    await store.mirror.applyRecords([{ shop: await shopOf("a"), records: [], inboxNumbers: [9] }], START, []);
    await running[0]?.succeed();
    expect(await settledCalls()).toEqual([]);
  });
});

test("due webhooks are read 500 at a time", async () => {
  const { store, receive, wake } = await processing();
  await receive("a", numbered("s", 600));
  const limits: number[] = [];
  const { due } = store.inbox;
  store.inbox.due = async (queue, now, limit) => {
    limits.push(limit);
    return due(queue, now, limit);
  };
  await wake();
  expect(limits).toEqual([500]);
});

test("a stop during a turn starts no further subject and no further turn", async () => {
  const { store, processor, receive, settle, newCalls, nextCalls } = await processing();
  await receive("a", numbered("s", 4));
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
  const [first, ...more] = await nextCalls();
  expect([first?.subject, more]).toEqual(["s1", []]);
  await first?.succeed();
  await settle();
  await stopping;
  expect([looked, newCalls()]).toEqual([1, []]);
});

test("stop waits for the subjects under way", async () => {
  const { processor, settle, newCalls } = await processingOf(["s"]);
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

test("every webhook is processed once, although others arrive in between", async () => {
  const { entries, processor, receive, newCalls } = await processing();
  const handled: number[] = [];
  for (let n = 0; n < 30; n += 1) {
    await receive("a", [`s${n % 4}`, `t${n % 7}`], n % 2 === 0);
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
  expect(await entries("a")).toEqual([]);
});
