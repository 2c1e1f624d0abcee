import { describe, expect, test } from "bun:test";
import { createDueFinder, type DueReads } from "../../../src/store/engine/due-finder.ts";

const MINUTE_MS = 60_000;

/**
 * A store with due rows, and queues with planned rows. A search by time takes `byTimeMs`, a search by queue
 * `byQueueMs`.
 */
function fakeStore(dueRows: number, queueCount: number) {
  const clock = { ms: 0 };
  const searches: string[] = [];
  const store = { byTimeMs: 1, byQueueMs: 1, fails: false, searches, clock, find: () => finder.find(reads) };
  const finder = createDueFinder(() => clock.ms);
  const reads: DueReads<string> = {
    byTime(limit) {
      clock.ms += store.byTimeMs;
      searches.push(`${limit} rows`);
      return { queues: ["found by time"], isComplete: dueRows < limit };
    },
    byQueue(limit) {
      clock.ms += store.byQueueMs;
      searches.push(`${limit ?? "all"} queues`);
      if (store.fails) throw new Error("the statement took too long");
      return { queues: ["found by queue"], isComplete: limit === null || queueCount < limit };
    },
  };
  return store;
}

test.each([
  { rows: 49, queues: 10_000, searches: ["50 rows"], by: "time" },
  { rows: 50, queues: 9, searches: ["50 rows", "10 queues"], by: "queue" },
  { rows: 100_000, queues: 9, searches: ["50 rows", "10 queues"], by: "queue" },
  { rows: 999, queues: 10, searches: ["50 rows", "10 queues", "1000 rows"], by: "time" },
  { rows: 1_000, queues: 10, searches: ["50 rows", "10 queues", "1000 rows", "all queues"], by: "queue" },
])("$rows due rows, with $queues queues, are found by the cheapest complete search", async (expected) => {
  const store = fakeStore(expected.rows, expected.queues);
  expect(await store.find()).toEqual([`found by ${expected.by}`]);
  expect<readonly string[]>(store.searches).toEqual(expected.searches);
});

describe("a search of few queues", () => {
  /** Makes `count` searches. @returns how many of them included a search of few queues */
  async function countByQueue(store: ReturnType<typeof fakeStore>, count: number) {
    store.searches.length = 0;
    for (let n = 0; n < count; n += 1) await store.find().catch(() => undefined);
    return store.searches.filter((each) => each === "10 queues").length;
  }

  test("is left out for a minute after it was slow four times, one directly after the other", async () => {
    const store = fakeStore(100, 5);
    store.byQueueMs = 4;
    expect(await countByQueue(store, 3)).toBe(3);
    store.byQueueMs = 3;
    expect(await countByQueue(store, 1)).toBe(1);
    store.byQueueMs = 4;
    expect(await countByQueue(store, 4)).toBe(4);
    const leftOutUntil = store.clock.ms + MINUTE_MS;
    expect(await countByQueue(store, 4)).toBe(0);
    store.byTimeMs = 0;
    store.clock.ms = leftOutUntil - 1;
    expect(await countByQueue(store, 1)).toBe(0);
    store.clock.ms = leftOutUntil;
    expect(await countByQueue(store, 5)).toBe(4);
  });

  test.each([
    { byTimeMs: 5, byQueueMs: 15, isSlow: false },
    { byTimeMs: 5, byQueueMs: 16, isSlow: true },
    { byTimeMs: 0.5, byQueueMs: 3, isSlow: false },
    { byTimeMs: 0.5, byQueueMs: 3.5, isSlow: true },
  ])("that takes $byQueueMs ms after $byTimeMs ms by time is slow: $isSlow", async ({ isSlow, ...times }) => {
    const store = Object.assign(fakeStore(100, 5), times);
    expect(await countByQueue(store, 5)).toBe(isSlow ? 4 : 5);
  });

  test("that fails after a long time is slow, too", async () => {
    const store = fakeStore(100, 5);
    store.byQueueMs = 8_000;
    store.fails = true;
    expect(await countByQueue(store, 5)).toBe(4);
  });
});
