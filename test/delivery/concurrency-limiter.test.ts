import { expect, test } from "bun:test";
import { type ConcurrencyLimiter, createConcurrencyLimiter } from "../../src/delivery/concurrency-limiter.ts";

/** Makes the endpoints of these shops quick. */
function makeQuick(limiter: ConcurrencyLimiter, ...shopIds: number[]): void {
  for (const shopId of shopIds) limiter.take(shopId)(5, false);
}

/** Makes the endpoints of these shops slow. */
function makeSlow(limiter: ConcurrencyLimiter, ...shopIds: number[]): void {
  for (const shopId of shopIds) for (const _ of [1, 2]) limiter.take(shopId)(10_000, true);
}

function shares(limiter: ConcurrencyLimiter, due: number[]): Record<number, number> {
  return Object.fromEntries(limiter.share(due));
}

/** Takes all slots that these shops may have. */
function takeAll(limiter: ConcurrencyLimiter, due: number[]): void {
  for (const [shopId, share] of limiter.share(due)) for (let n = 0; n < share; n += 1) limiter.take(shopId);
}

test("a shop gets no more than its slots", () => {
  const limiter = createConcurrencyLimiter(10, 4);
  makeQuick(limiter, 1);
  expect(shares(limiter, [1])).toEqual({ 1: 4 });
  const giveBack = limiter.take(1);
  limiter.take(1);
  expect(shares(limiter, [1])).toEqual({ 1: 2 });
  giveBack(5, false);
  expect(shares(limiter, [1])).toEqual({ 1: 3 });
});

test("all shops together get no more than all slots", () => {
  const limiter = createConcurrencyLimiter(5, 4);
  makeQuick(limiter, 1, 2, 3);
  expect(shares(limiter, [1, 2, 3])).toEqual({ 1: 2, 2: 2, 3: 1 });
});

test("shops take turns: the next round begins after the shop served last", () => {
  const limiter = createConcurrencyLimiter(2, 1);
  makeQuick(limiter, 1, 2, 3);
  const rounds = [1, 2, 3].map(() => shares(limiter, [1, 2, 3]));
  expect(rounds).toEqual([
    { 1: 1, 2: 1 },
    { 3: 1, 1: 1 },
    { 2: 1, 3: 1 },
  ]);
});

test("slow shops take turns too, and so do untried ones", () => {
  const slow = createConcurrencyLimiter(2, 1);
  makeSlow(slow, 1, 2, 3);
  expect([1, 2, 3].map(() => shares(slow, [1, 2, 3]))).toEqual([{ 1: 1 }, { 2: 1 }, { 3: 1 }]);
  const untried = createConcurrencyLimiter(4, 1);
  expect([1, 2, 3].map(() => shares(untried, [1, 2, 3]))).toEqual([{ 1: 1 }, { 2: 1 }, { 3: 1 }]);
});

test("an untried endpoint gets one slot until it has answered", () => {
  const limiter = createConcurrencyLimiter(10, 4);
  expect(shares(limiter, [1])).toEqual({ 1: 1 });
  const giveBack = limiter.take(1);
  expect(shares(limiter, [1])).toEqual({});
  giveBack(5, false);
  expect(shares(limiter, [1])).toEqual({ 1: 4 });
});

test.each<[string, number, boolean]>([
  ["hangs", 10_000, true],
  ["times out soon", 500, true],
  ["answers just before the timeout", 9_900, false],
  ["takes a second", 1_000, false],
])(
  "an endpoint that %s gets one slot from the second time on, until it is quick again",
  (_name, durationMs, timedOut) => {
    const limiter = createConcurrencyLimiter(10, 4);
    makeQuick(limiter, 1);
    limiter.take(1)(durationMs, timedOut);
    expect(shares(limiter, [1])).toEqual({ 1: 4 });
    limiter.take(1)(durationMs, timedOut);
    expect(shares(limiter, [1])).toEqual({ 1: 1 });
    limiter.take(1)(999, false);
    expect(shares(limiter, [1])).toEqual({ 1: 4 });
  },
);

test("quick endpoints get slots even if many others are slow or untried, and so does a new one", () => {
  const limiter = createConcurrencyLimiter(16, 4);
  const slow = Array.from({ length: 300 }, (_, n) => n + 100);
  const untried = Array.from({ length: 300 }, (_, n) => n + 1000);
  makeSlow(limiter, ...slow);
  makeQuick(limiter, 1);
  takeAll(limiter, slow);
  expect(limiter.free).toBe(8);
  expect(shares(limiter, [2, ...slow])).toEqual({ 2: 1 });
  takeAll(limiter, [...slow, ...untried]);
  expect(limiter.free).toBe(4);
  expect(shares(limiter, [1, ...slow, ...untried])).toEqual({ 1: 4 });
});

test("the last free slot goes to a quick endpoint, or else to an untried one, or else to a slow one", () => {
  const limiter = createConcurrencyLimiter(8, 8);
  const [slow, quick, untried] = [1, 2, 3];
  makeSlow(limiter, slow);
  makeQuick(limiter, quick);
  for (let n = 0; n < 7; n += 1) limiter.take(quick);
  expect(shares(limiter, [slow, quick, untried])).toEqual({ [quick]: 1 });
  expect(shares(limiter, [slow, untried])).toEqual({ [untried]: 1 });
  expect(shares(limiter, [slow])).toEqual({ [slow]: 1 });
});

test("a single slot is enough for an endpoint of any pace", () => {
  for (const make of [makeQuick, makeSlow, () => undefined]) {
    const limiter = createConcurrencyLimiter(1, 4);
    make(limiter, 1);
    expect(shares(limiter, [1])).toEqual({ 1: 1 });
  }
});

test("a slot counts for the pace at which it was taken, even if the pace changes before it is given back", () => {
  const limiter = createConcurrencyLimiter(4, 4);
  const taken = [limiter.take(1), limiter.take(1)];
  for (const giveBack of taken) giveBack(10_000, true);
  expect(limiter.free).toBe(4);
  expect(shares(limiter, [1, 2])).toEqual({ 1: 1, 2: 1 });
});

test("every slot is given back", () => {
  const limiter = createConcurrencyLimiter(6, 3);
  let state = 1;
  const random = (n: number) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % n;
  };
  const held: (() => void)[] = [];
  for (let step = 0; step < 2_000; step += 1) {
    for (const [shopId, share] of limiter.share([1, 2, 3, 4, 5])) {
      for (let n = 0; n < share; n += 1) {
        const giveBack = limiter.take(shopId);
        held.push(() => giveBack(random(2_000), random(3) === 0));
      }
    }
    expect(limiter.free).toBeGreaterThanOrEqual(0);
    for (let n = random(held.length + 1); n > 0; n -= 1) held.splice(random(held.length), 1)[0]?.();
  }
  for (const giveBack of held) giveBack();
  expect(limiter.free).toBe(6);
});
