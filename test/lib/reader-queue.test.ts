import { expect, test } from "bun:test";
import { createLoadGauge, createReaderQueue } from "../../src/lib/reader-queue.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/**
 * Lets readers enter a queue at the same time.
 * @returns how many readers had run by the end of each turn, from the first turn on
 */
async function enterTogether(load: { busy: boolean; urgent: boolean }, readers: number, turns: number) {
  const queue = createReaderQueue(load);
  let ran = 0;
  for (let reader = 0; reader < readers; reader += 1) {
    const entry = queue.enter();
    if (entry === undefined) ran += 1;
    else
      entry.then(() => {
        ran += 1;
      });
  }
  const counts = [ran];
  while (counts.length <= turns) {
    await turn();
    counts.push(ran);
  }
  return counts;
}

test("readers do not wait without other work", async () => {
  expect(await enterTogether({ busy: false, urgent: false }, 4, 1)).toEqual([4, 4]);
});

test("while other work is under way, one reader runs in each turn of the event loop, the first at once", async () => {
  expect(await enterTogether({ busy: true, urgent: false }, 4, 4)).toEqual([1, 2, 3, 4, 4]);
});

test("while work is urgent, eight turns pass before each next reader", async () => {
  const counts = await enterTogether({ busy: true, urgent: true }, 3, 19);
  expect(counts.slice(0, 9)).toEqual(Array.from({ length: 9 }, () => 1));
  expect(counts.slice(9, 18)).toEqual(Array.from({ length: 9 }, () => 2));
  expect(counts[18]).toBe(3);
});

test("after a long reader, one reader runs in each turn, even without other work", async () => {
  const queue = createReaderQueue({ busy: false, urgent: false });
  let ran = 0;
  const read = () => {
    ran += 1;
    queue.noteLong();
  };
  for (let reader = 0; reader < 3; reader += 1) {
    const entry = queue.enter();
    if (entry === undefined) read();
    else entry.then(read);
  }
  const counts = [ran];
  while (counts.length < 4) {
    await turn();
    counts.push(ran);
  }
  expect(counts).toEqual([1, 2, 3, 3]);
  await turn();
  expect(queue.enter()).toBeUndefined();
  expect(queue.enter()).toBeUndefined();
});

test("readers run in the order of their calls", async () => {
  const queue = createReaderQueue({ busy: true, urgent: false });
  const order: string[] = [];
  queue.enter();
  const second = queue.enter()?.then(() => order.push("second"));
  await turn();
  const third = queue.enter()?.then(() => order.push("third"));
  await Promise.all([second, third]);
  expect(order).toEqual(["second", "third"]);
});

test("work is urgent for 20 ms, and counts as busy until two seconds after its end or failure", async () => {
  let now = 0;
  const gauge = createLoadGauge(() => now);
  const state = () => [gauge.busy, gauge.urgent];
  expect(state()).toEqual([false, false]);
  const { promise, reject } = Promise.withResolvers<void>();
  const work = gauge.during(promise);
  expect(state()).toEqual([true, true]);
  now += 20;
  expect(state()).toEqual([true, false]);
  now += 60_000;
  reject(new Error("the endpoint hangs"));
  await expect(work).rejects.toThrow("the endpoint hangs");
  now += 1_999;
  expect(state()).toEqual([true, false]);
  now += 1;
  expect(state()).toEqual([false, false]);
});
