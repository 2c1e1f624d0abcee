import { expect, test } from "bun:test";
import { createRateLimiter, type ThrottleStatus } from "../../src/lib/rate-limiter.ts";

/** A limiter whose waits move its clock. */
function limiter() {
  const clock = { ms: 0 };
  const waits: number[] = [];
  const { reserve } = createRateLimiter(
    () => clock.ms,
    async (waitMs) => {
      waits.push(waitMs);
      clock.ms += waitMs;
    },
  );
  /** Reserves points and gives them back at once. */
  const spend = async (cost: number, status?: ThrottleStatus) => (await reserve(cost))(status);
  return { clock, waits, reserve, spend };
}

const FULL = { maximumAvailable: 1000, currentlyAvailable: 1000, restoreRate: 50 };
const FEW = { ...FULL, currentlyAvailable: 40 };

test("before the first response nothing waits", async () => {
  const { waits, spend } = limiter();
  await spend(1_000_000);
  expect(waits).toEqual([]);
});

test.each([
  ["enough points need no wait", FEW, 40, []],
  ["one missing point is waited for", FEW, 41, [20]],
  ["points that come back slowly are waited for", { ...FEW, restoreRate: 1 }, 41, [1000]],
  ["the wait is as long as the missing points take", FEW, 100, [1200]],
  ["a part of a millisecond counts as one", { ...FEW, restoreRate: 70 }, 100, [858]],
  ["no wait is longer than a minute", FEW, 100_000, [60_000]],
  ["points that never come back are not waited for", { ...FEW, restoreRate: 0 }, 100, []],
])("%s", async (_title, status, cost, expected) => {
  const { waits, spend } = limiter();
  await spend(0, status);
  await spend(cost);
  expect(waits).toEqual(expected);
});

test("points come back with time, up to the maximum", async () => {
  const { clock, waits, spend } = limiter();
  await spend(0, FEW);
  clock.ms += 1_000;
  await spend(100);
  expect(waits).toEqual([200]);
  clock.ms += 1_000_000;
  await spend(1010);
  expect(waits).toEqual([200, 200]);
});

test("points of requests under way count as taken until they are released", async () => {
  const { waits, reserve, spend } = limiter();
  await spend(0, FULL);
  const release = await reserve(900);
  await spend(150);
  expect(waits).toEqual([1000]);
  release(undefined);
  await spend(900);
  expect(waits).toEqual([1000]);
});

test("callers get their points in the order of their calls, one after another", async () => {
  const { waits, reserve, spend } = limiter();
  await spend(0, FEW);
  const order: number[] = [];
  const reserveInOrder = async (cost: number) => {
    await reserve(cost);
    order.push(cost);
  };
  await Promise.all([100, 10, 50].map(reserveInOrder));
  expect(order).toEqual([100, 10, 50]);
  expect(waits).toEqual([1200, 200, 1000]);
});
