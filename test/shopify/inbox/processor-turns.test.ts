import { describe, expect, test } from "bun:test";
import { SdsError } from "../../../src/domain/error.ts";
import { START } from "../../support/app.ts";
import { eventually } from "../../support/eventually.ts";
import { bySubject, countByShop, numbered, processing, SECOND } from "./slow-processing.ts";

describe("shops take turns", () => {
  test("and each shop starts one subject before any shop starts a second one", async () => {
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
    await receive(a, numbered("s", 34));
    await receive(b, ["s1"]);
    await wake();
    const running = newCalls();
    expect(countByShop(running)).toEqual({ a: 32, b: 1 });
    await running[0]?.succeed();
    await settle();
    expect(bySubject(newCalls())).toEqual(["a s33"]);
  });
});

describe("the limit of subjects under way is", () => {
  test("32 subjects of one shop that need the platform, and 256 of all shops", async () => {
    const { addShop, receive, wake, newCalls } = await processing();
    const shop = await addShop("alone");
    await receive(shop, numbered("s", 33));
    await wake();
    expect(newCalls()).toHaveLength(32);
    for (let n = 0; n < 9; n += 1) await receive(await addShop(`shop${n}`), numbered("s", 33));
    await wake();
    const counts = countByShop(newCalls());
    expect(Object.values(counts).reduce((sum, count) => sum + count, 0)).toBe(256 - 32);
    expect(Object.keys(counts)).toHaveLength(9);
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
    await receive(shop, numbered("asking", 40));
    await wake();
    const running = newCalls();
    expect(running.filter(({ subject }) => subject.startsWith("quick"))).toHaveLength(64);
    expect(running.filter(({ subject }) => subject.startsWith("asking"))).toHaveLength(32);
  });

  test("1 subject that needs the platform of a shop whose platform is slow, until it is faster", async () => {
    const { addShop, receive, wake, settle, newCalls, slowShops } = await processing();
    const shop = await addShop("a");
    slowShops.add(shop.id);
    await receive(shop, numbered("s", 70));
    await receive(shop, ["quick"], false);
    await receive(await addShop("b"), numbered("s", 3));
    await wake();
    const running = newCalls();
    expect(countByShop(running)).toEqual({ a: 2, b: 3 });
    slowShops.clear();
    await running.find(({ subject }) => subject === "s1")?.succeed();
    await settle();
    expect(newCalls()).toHaveLength(32);
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

  test("are processed together when the first is due, also those that failed", async () => {
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

  test("keep their wait over a restart, unless a clock that was ahead planned it", async () => {
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

test("a stop during a turn starts no further subject and no further turn", async () => {
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

test("stop waits for the subjects under way", async () => {
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

test("every webhook is processed once, although others arrive in between", async () => {
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
