import { expect, test } from "bun:test";
import { ConcurrencyLimiter } from "../../src/delivery/concurrency-limiter.ts";

/** Has each of some shops answer once, so that they are known. */
function knownTo(places: ConcurrencyLimiter, ...shops: number[]): void {
  for (const shop of shops) places.take(shop)(5, false);
}

function shared(places: ConcurrencyLimiter, due: number[]): Record<number, number> {
  return Object.fromEntries(places.share(due));
}

test("a shop has its places and no more", () => {
  const places = new ConcurrencyLimiter(10, 4);
  knownTo(places, 1);
  expect(shared(places, [1])).toEqual({ 1: 4 });
  places.take(1);
  places.take(1);
  expect(shared(places, [1])).toEqual({ 1: 2 });
});

test("all shops have no more than all places", () => {
  const places = new ConcurrencyLimiter(5, 4);
  knownTo(places, 1, 2, 3);
  expect(shared(places, [1, 2, 3])).toEqual({ 1: 2, 2: 2, 3: 1 });
});

test("shops are served in turn: the next round begins behind the shop served last", () => {
  const places = new ConcurrencyLimiter(2, 1);
  knownTo(places, 1, 2, 3);
  expect([shared(places, [1, 2, 3]), shared(places, [1, 2, 3]), shared(places, [1, 2, 3])]).toEqual([
    { 1: 1, 2: 1 },
    { 3: 1, 1: 1 },
    { 2: 1, 3: 1 },
  ]);
});

test("an untried endpoint has one place until it has answered", () => {
  const places = new ConcurrencyLimiter(10, 4);
  expect(shared(places, [1])).toEqual({ 1: 1 });
  const giveBack = places.take(1);
  expect(shared(places, [1])).toEqual({});
  giveBack(5, false);
  expect(shared(places, [1])).toEqual({ 1: 4 });
});

test.each<[string, number, boolean]>([
  ["hangs", 10_000, true],
  ["answers, but just before the timeout", 9_900, false],
])("an endpoint that %s has one place from the second time on, until it is quick again", (_name, duration, timedOut) => {
  const places = new ConcurrencyLimiter(10, 4);
  knownTo(places, 1);
  places.take(1)(duration, timedOut);
  expect(shared(places, [1])).toEqual({ 1: 4 });
  places.take(1)(duration, timedOut);
  expect(shared(places, [1])).toEqual({ 1: 1 });
  places.take(1)(5, false);
  expect(shared(places, [1])).toEqual({ 1: 4 });
});

/** Gives all places that are to be had to these shops. */
function fill(places: ConcurrencyLimiter, due: number[]): void {
  for (const [shop, share] of places.share(due)) for (let n = 0; n < share; n += 1) places.take(shop);
}

test("however many endpoints are slow or untried, quick ones find places, and so does a new one", () => {
  const places = new ConcurrencyLimiter(16, 4);
  const slow = Array.from({ length: 300 }, (_, n) => n + 100);
  for (const shop of slow) for (const _ of [1, 2]) places.take(shop)(10_000, true);
  const untried = Array.from({ length: 300 }, (_, n) => n + 1000);
  knownTo(places, 1);
  fill(places, slow);
  expect(places.free).toBe(8);
  expect(shared(places, [2, ...slow])).toEqual({ 2: 1 });
  fill(places, [...slow, ...untried]);
  expect(places.free).toBe(4);
  expect(shared(places, [1, ...slow, ...untried])).toEqual({ 1: 4 });
});

test("slow shops are served in turn too", () => {
  const places = new ConcurrencyLimiter(2, 1);
  for (const shop of [1, 2, 3]) for (const _ of [1, 2]) places.take(shop)(10_000, true);
  expect([shared(places, [1, 2, 3]), shared(places, [1, 2, 3]), shared(places, [1, 2, 3])]).toEqual([{ 1: 1 }, { 2: 1 }, { 3: 1 }]);
});

test("whatever happens, places come back", () => {
  const places = new ConcurrencyLimiter(6, 3);
  let state = 1;
  const random = (n: number) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % n;
  };
  const held: (() => void)[] = [];
  for (let step = 0; step < 2_000; step += 1) {
    for (const [shop, share] of places.share([1, 2, 3, 4, 5])) {
      for (let n = 0; n < share; n += 1) {
        const giveBack = places.take(shop);
        held.push(() => giveBack(random(2_000), random(3) === 0));
      }
    }
    expect(places.free).toBeGreaterThanOrEqual(0);
    for (let n = random(held.length + 1); n > 0; n -= 1) held.splice(random(held.length), 1)[0]?.();
  }
  for (const giveBack of held) giveBack();
  expect(places.free).toBe(6);
});
