import { describe, expect, test } from "bun:test";
import type { Ending } from "../../src/delivery/concurrency-limiter.ts";
import type { DeliveryKind } from "../../src/domain/deliveries/delivery.ts";
import {
  limiterOf,
  MINUTE,
  makeQuick,
  makeRecovering,
  makeSlow,
  OK,
  range,
  shares,
  TIMEOUT,
  takeAll,
  URL,
  webhooks,
} from "./limiters.ts";

test("a shop gets at most its own slots", () => {
  const { limiter } = limiterOf(40, 4);
  makeQuick(limiter, 1);
  expect(shares(limiter, [1])).toEqual({ 1: 4 });
  const giveBack = limiter.take(1, "webhook", URL);
  limiter.take(1, "webhook", URL);
  expect(shares(limiter, [1])).toEqual({ 1: 2 });
  giveBack(OK);
  expect(shares(limiter, [1])).toEqual({ 1: 3 });
});

test("in all processes together, a queue may have one slot until its attempts are quick", () => {
  const { limiter } = limiterOf(40, 4);
  makeQuick(limiter, 1);
  makeSlow(limiter, 2);
  const due = [{ shopId: 1, kind: "trigger" as const }, ...webhooks([1, 2, 3])];
  expect(limiter.share(due).map(({ shopId, kind, limit }) => [shopId, kind, limit])).toEqual([
    [1, "webhook", 4],
    [1, "trigger", 1],
    [3, "webhook", 1],
    [2, "webhook", 1],
  ]);
});

test("one shop alone may have all slots, if the limit of a shop allows it", () => {
  const { limiter } = limiterOf(4, 4);
  makeQuick(limiter, 1);
  expect(shares(limiter, [1])).toEqual({ 1: 4 });
});

test("all shops together get at most all slots", () => {
  const { limiter } = limiterOf(5, 4);
  makeQuick(limiter, 1, 2, 3);
  expect(shares(limiter, [1, 2, 3])).toEqual({ 1: 2, 2: 2, 3: 1 });
});

test("shops take turns: the next round begins after the shop served last", () => {
  const { limiter } = limiterOf(2, 1);
  makeQuick(limiter, 1, 2, 3);
  const rounds = [1, 2, 3].map(() => shares(limiter, [1, 2, 3]));
  expect(rounds).toEqual([
    { 1: 1, 2: 1 },
    { 3: 1, 1: 1 },
    { 2: 1, 3: 1 },
  ]);
});

test("slow shops take turns too, and so do untried ones", () => {
  const { limiter: slow } = limiterOf(2, 1);
  makeSlow(slow, 1, 2, 3);
  expect([1, 2, 3].map(() => shares(slow, [1, 2, 3]))).toEqual([{ 1: 1 }, { 2: 1 }, { 3: 1 }]);
  const { limiter: untried } = limiterOf(1, 1);
  expect([1, 2, 3].map(() => shares(untried, [1, 2, 3]))).toEqual([{ 1: 1 }, { 2: 1 }, { 3: 1 }]);
});

test("at most 32 attempts of untried and slow endpoints begin together", () => {
  const { limiter } = limiterOf(512, 4);
  makeSlow(limiter, ...range(40));
  const first = limiter.share(webhooks(range(60)));
  expect([first.length, limiter.heldBack]).toEqual([32, true]);
  for (const { shopId } of first) limiter.take(shopId, "webhook", URL);
  const second = limiter.share(webhooks(range(60)));
  expect([second.length, limiter.heldBack]).toEqual([28, false]);
});

test("an untried endpoint gets one slot, and one more for each quick attempt", () => {
  const { limiter } = limiterOf(10, 4);
  expect(shares(limiter, [1])).toEqual({ 1: 1 });
  const giveBack = limiter.take(1, "webhook", URL);
  expect(shares(limiter, [1])).toEqual({});
  giveBack(OK);
  for (const slots of [2, 3, 4, 4]) {
    expect(shares(limiter, [1])).toEqual({ 1: slots });
    limiter.take(1, "webhook", URL)(OK);
  }
});

describe("an endpoint", () => {
  const quick: [number][] = [[5], [999], [5], [5]];
  test.each<[string, [durationMs: number, ending?: Ending][], number[]]>([
    [
      "loses all slots by a timeout, and gets one back for each quick attempt",
      [...quick, [10_000, TIMEOUT]],
      [1, 1, 2, 3, 4],
    ],
    ["loses all slots by a timeout of less than a second", [...quick, [500, TIMEOUT]], [1, 1, 2]],
    ["loses half of its slots by an attempt that takes a second", [...quick, [1_000]], [2, 3, 4]],
    ["keeps one slot after attempts that take a second", [...quick, [1_000], [1_000], [1_000], [1_000]], [1, 1, 2]],
    ["has one slot after a first attempt that times out", [[10_000, TIMEOUT]], [1, 1, 2]],
    ["has one slot after a first attempt that takes a second", [[1_000]], [1, 1, 2]],
  ])("%s", (_name, attempts, slots) => {
    const { limiter, clock } = limiterOf(40, 4);
    for (const [durationMs, ending = OK] of attempts) {
      const giveBack = limiter.take(1, "webhook", URL);
      clock.ms += durationMs;
      giveBack(ending);
    }
    for (const count of slots) {
      expect(shares(limiter, [1])).toEqual({ 1: count });
      limiter.take(1, "webhook", URL)(OK);
    }
  });

  test("loses half of its slots while an attempt runs for a second", () => {
    const { limiter, clock } = limiterOf(40, 4);
    makeQuick(limiter, 1);
    const giveBack = limiter.take(1, "webhook", URL);
    clock.ms += 999;
    expect(shares(limiter, [1])).toEqual({ 1: 3 });
    clock.ms += 1;
    expect(shares(limiter, [1])).toEqual({ 1: 1 });
    giveBack(OK);
    expect(shares(limiter, [1])).toEqual({ 1: 2 });
  });

  test("with a new URL is untried, whatever attempts at the old URL show later", () => {
    const { limiter } = limiterOf(40, 4);
    makeSlow(limiter, 1);
    const late = limiter.take(1, "webhook", URL);
    limiter.take(1, "webhook", "https://other.example.com/")(OK);
    expect(late(TIMEOUT)).toBeUndefined();
    expect(shares(limiter, [1])).toEqual({ 1: 2 });
  });

  test("is recovering for five minutes after a timeout, and gets no reserved slot", () => {
    const { limiter, clock } = limiterOf(64, 4);
    makeRecovering(limiter, 1);
    takeAll(limiter, range(100, 100));
    expect(limiter.free).toBe(7);
    clock.ms += 5 * MINUTE - 1;
    expect(shares(limiter, [1])).toEqual({});
    clock.ms += 1;
    expect(shares(limiter, [1])).toEqual({ 1: 1 });
  });
});

test("the end of an attempt returns the pace to store", () => {
  const { limiter } = limiterOf(40, 4);
  const paces = [OK, TIMEOUT, TIMEOUT, OK].map((ending) => limiter.take(1, "webhook", URL)(ending));
  expect(paces).toEqual(["quick", "slow", "slow", "quick"]);
});

test("an attempt without an ending gives its slot back and says nothing about the endpoint", () => {
  const { limiter, clock } = limiterOf(4, 4);
  const attempt = (durationMs: number, ending?: Ending) => {
    const giveBack = limiter.take(1, "webhook", URL);
    clock.ms += durationMs;
    return giveBack(ending);
  };
  expect(attempt(5)).toBeUndefined();
  expect([limiter.free, shares(limiter, [1])]).toEqual([4, { 1: 1 }]);
  attempt(5, OK);
  attempt(5);
  expect(shares(limiter, [1])).toEqual({ 1: 2 });
});

test("the workflow triggers of a shop have a pace of their own", () => {
  const { limiter, clock } = limiterOf(40, 4);
  const due = (kind: DeliveryKind) => limiter.share([{ shopId: 1, kind }])[0]?.count;
  makeQuick(limiter, 1);
  limiter.take(1, "trigger", null)(TIMEOUT);
  expect([due("webhook"), due("trigger")]).toEqual([4, 1]);
  const giveBack = limiter.take(1, "trigger", null);
  clock.ms += 1_000;
  expect([due("webhook"), due("trigger")]).toEqual([4, undefined]);
  giveBack(TIMEOUT);
  makeSlow(limiter, 1);
  for (let n = 0; n < 4; n += 1) limiter.take(1, "trigger", null)(OK);
  expect([due("webhook"), due("trigger")]).toEqual([1, 4]);
});

test("after a restart each endpoint has one slot, and the stored pace decides when it gets the slot", () => {
  const { limiter, clock } = limiterOf(64, 1);
  limiter.restore(1, URL, "quick", Number.POSITIVE_INFINITY);
  limiter.restore(2, URL, "quick", 5 * MINUTE - 1);
  limiter.restore(3, URL, "slow", 60 * MINUTE);
  limiter.restore(4, "https://other.example.com/", "slow", 0);
  expect(shares(limiter, [1, 2, 3, 4, 5])).toEqual({ 1: 1, 2: 1, 3: 1, 4: 1, 5: 1 });
  limiter.take(4, "webhook", URL)(OK);
  takeAll(limiter, range(100, 100));
  expect([limiter.free, shares(limiter, [1, 2, 3, 4])]).toEqual([7, { 1: 1, 4: 1 }]);
  clock.ms += 1;
  expect(shares(limiter, [1, 2, 3, 4])).toEqual({ 1: 1, 2: 1, 4: 1 });
});

test("every slot is given back", () => {
  const { limiter, clock } = limiterOf(6, 3);
  let state = 1;
  const random = (n: number) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % n;
  };
  const held: (() => void)[] = [];
  for (let step = 0; step < 2_000; step += 1) {
    for (const giveBack of takeAll(limiter, [1, 2, 3, 4, 5])) held.push(() => giveBack(random(3) === 0 ? TIMEOUT : OK));
    clock.ms += random(1_000);
    expect(limiter.free).toBeGreaterThanOrEqual(0);
    for (let n = random(held.length + 1); n > 0; n -= 1) held.splice(random(held.length), 1)[0]?.();
  }
  for (const giveBack of held) giveBack();
  expect(limiter.free).toBe(6);
});
