import { expect, test } from "bun:test";
import { createDueFinder, type DueReads } from "../../../src/store/engine/due-finder.ts";

const MINUTE_MS = 60_000;

/** A store with due rows, and queues with planned rows. A search by time takes a millisecond. */
function fakeStore(dueRows: number, queueCount: number) {
  const clock = { ms: 0 };
  const searches: string[] = [];
  const store = { byQueueMs: 1, searches, clock, find: () => finder.find(reads) };
  const finder = createDueFinder(() => clock.ms);
  const reads: DueReads<string> = {
    byTime(limit) {
      clock.ms += 1;
      searches.push(`${limit} rows`);
      return { queues: ["found by time"], isComplete: dueRows < limit };
    },
    byQueue(limit) {
      clock.ms += store.byQueueMs;
      searches.push(`${limit ?? "all"} queues`);
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

test("a search of few queues that is slow four times is left out for a minute", async () => {
  const store = fakeStore(100, 5);
  /** Returns in how many of the next searches the few queues were searched. */
  const countByQueue = async (count: number) => {
    store.searches.length = 0;
    for (let n = 0; n < count; n += 1) expect(await store.find()).toHaveLength(1);
    return store.searches.filter((each) => each === "10 queues").length;
  };
  store.byQueueMs = 4;
  expect(await countByQueue(3)).toBe(3);
  store.byQueueMs = 3;
  expect(await countByQueue(1)).toBe(1);
  store.byQueueMs = 4;
  expect(await countByQueue(3)).toBe(3);
  expect(await countByQueue(5)).toBe(1);
  store.clock.ms += MINUTE_MS - 20;
  expect(await countByQueue(1)).toBe(0);
  store.clock.ms += 20;
  expect(await countByQueue(5)).toBe(4);
});
