import { describe, expect, test } from "bun:test";
import { createRateLimiter, type ThrottleStatus } from "../../src/lib/rate-limiter.ts";

/** Makes a limiter whose waits move its clock. */
function limiter() {
  const clock = { ms: 0 };
  const waits: number[] = [];
  const limits = createRateLimiter(
    () => clock.ms,
    async (waitMs) => {
      waits.push(waitMs);
      clock.ms += waitMs;
    },
  );
  const reserve = (cost: number, priority = 0) => limits.reserve(cost, priority);
  /** Reserves points and gives them back at once. */
  const spend = async (cost: number, status?: ThrottleStatus) => (await reserve(cost))(status);
  return { clock, waits, reserve, spend, available: limits.available };
}

const FULL = { maximumAvailable: 1000, currentlyAvailable: 1000, restoreRate: 50 };
const FEW = { ...FULL, currentlyAvailable: 40 };

test("callers do not wait before the first response", async () => {
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

test("the points that are available come back with time, and leave out what is reserved", async () => {
  const { clock, reserve, spend, available } = limiter();
  expect(available()).toBeUndefined();
  await spend(0, FEW);
  expect(available()).toBe(40);
  clock.ms += 1_000;
  await reserve(10);
  expect(available()).toBe(80);
  clock.ms += 60_000;
  expect(available()).toBe(990);
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

describe("callers who wait", () => {
  const EMPTY = { maximumAvailable: 1000, currentlyAvailable: 0, restoreRate: 100 };

  /** Makes a limiter without points. The test ends its waits. */
  function waiting() {
    const clock = { ms: 0 };
    const sleeps: { ms: number; end: () => void }[] = [];
    const limits = createRateLimiter(
      () => clock.ms,
      (ms) => new Promise((end) => sleeps.push({ ms, end })),
    );
    const served: string[] = [];
    const settle = async () => {
      for (let round = 0; round < 50; round += 1) await Promise.resolve();
    };
    return {
      limits,
      served,
      sleeps,
      settle,
      empty: async () => (await limits.reserve(0, 0))(EMPTY),
      call: (name: string, cost: number, priority: number) =>
        void limits.reserve(cost, priority).then(() => served.push(name)),
      /** Moves the clock by the last wait, and ends that wait. */
      async pass() {
        await settle();
        const { ms, end } = sleeps.at(-1) ?? { ms: 0, end: () => {} };
        clock.ms += ms;
        end();
        await settle();
      },
    };
  }

  test("are served by their priority, and then in the order of their calls", async () => {
    const { served, empty, call, pass } = waiting();
    await empty();
    // One point in ten goes to the caller that has waited longest, here the load. With so few calls, these points do
    // not add up to the load's cost.
    for (const [name, priority] of [
      ["load", 4],
      ["order 1", 2],
      ["attempt 1", 0],
      ["order 2", 2],
      ["attempt 2", 0],
    ] as const)
      call(name, 100, priority);
    for (let n = 0; n < 5; n += 1) await pass();
    expect(served).toEqual(["attempt 1", "attempt 2", "order 1", "order 2", "load"]);
  });

  test("let a more urgent caller pass while the points are saved up", async () => {
    const { served, sleeps, settle, empty, call, pass } = waiting();
    await empty();
    call("load", 500, 4);
    await settle();
    expect(sleeps.map(({ ms }) => ms)).toEqual([5_000]);
    call("attempt", 10, 0);
    call("order", 10, 2);
    await settle();
    // The limiter already waits for the more urgent attempt, so it starts no wait for the order.
    expect(sleeps.map(({ ms }) => ms)).toEqual([5_000, 100]);
    await pass();
    await pass();
    expect(served).toEqual(["attempt", "order"]);
    await pass();
    expect(served).toEqual(["attempt", "order", "load"]);
  });

  test("leave points to other programs, unless a more urgent caller waits", async () => {
    const { served, sleeps, settle, limits, pass } = waiting();
    (await limits.reserve(0, 0))({ ...EMPTY, currentlyAvailable: 200 });
    const call = (name: string, cost: number, priority: number, sparePart?: number) =>
      void limits.reserve(cost, priority, sparePart).then(() => served.push(name));
    call("load", 100, 4, 0.5);
    await settle();
    expect(sleeps.map(({ ms }) => ms)).toEqual([4_000]);
    call("attempt", 100, 0);
    await settle();
    expect(served).toEqual(["attempt"]);
    await pass();
    expect(served).toEqual(["attempt", "load"]);
    // The load must leave half of the points to other programs. Together, this half and the load's cost are more than
    // the maximum of points. So the limiter waits only until the maximum is reached.
    call("large load", 900, 4, 0.5);
    await settle();
    expect(sleeps.at(-1)).toMatchObject({ ms: 5_000 });
  });

  test("leave no points while a more urgent caller waits for its tenth", async () => {
    const { served, sleeps, settle, empty, limits, call, pass } = waiting();
    await empty();
    void limits.reserve(19, 4, 0.5).then(() => served.push("load"));
    for (let n = 0; n < 18; n += 1) call("attempt", 10, 0);
    while (served.length < 18) await pass();
    expect(sleeps.at(-1)).toMatchObject({ ms: 5_190 });
    call("late", 10, 0);
    await settle();
    expect(sleeps.at(-1)).toMatchObject({ ms: 190 });
    await pass();
    expect(served.slice(18)).toEqual(["load"]);
  });

  test("get a point in ten, for any number of more urgent callers", async () => {
    const { served, empty, call, pass } = waiting();
    await empty();
    const count = (name: string) => served.filter((each) => each === name).length;
    for (let n = 0; n < 30; n += 1) call("load", 50, 4);
    for (let n = 0; n < 300; n += 1) {
      call("order", 10, 2);
      while (count("order") < n) await pass();
    }
    expect(count("load") * 50).toBeWithin(300, 350);
  });
});
