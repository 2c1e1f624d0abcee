import { describe, expect, test } from "bun:test";
import { limiterOf, makeQuick, makeRecovering, makeSlow, OK, range, shares, takeAll } from "./limiters.ts";

describe("slots are kept", () => {
  test("from slow endpoints: half of them, of which a quarter is for recovering endpoints", () => {
    const { limiter } = limiterOf(64, 1);
    makeSlow(limiter, ...range(100));
    makeRecovering(limiter, ...range(100, 101));
    takeAll(limiter, range(100));
    expect(limiter.free).toBe(32);
    takeAll(limiter, range(100, 101));
    expect(limiter.free).toBe(24);
  });

  test("from recovering endpoints: three eighths of them", () => {
    const { limiter } = limiterOf(64, 1);
    makeRecovering(limiter, ...range(100));
    takeAll(limiter, range(100));
    expect(limiter.free).toBe(24);
  });

  test("from the second slot of a recovering endpoint, for the first slot of others", () => {
    const { limiter } = limiterOf(64, 4);
    makeRecovering(limiter, ...range(20));
    const [first] = takeAll(limiter, range(19));
    expect([limiter.free, shares(limiter, range(20))]).toEqual([24, {}]);
    first?.(OK);
    expect(shares(limiter, range(20))).toEqual({ 20: 1 });
  });

  test("from attempts that began to hang, which count as slow", () => {
    const { limiter, clock } = limiterOf(64, 1);
    takeAll(limiter, range(40));
    makeSlow(limiter, 99);
    expect(shares(limiter, [99])).toEqual({ 99: 1 });
    clock.ms += 1_000;
    expect(shares(limiter, [99])).toEqual({});
  });

  test("from untried endpoints, for quick ones", () => {
    const { limiter } = limiterOf(64, 1);
    makeQuick(limiter, 1);
    takeAll(limiter, range(100, 2));
    expect(limiter.free).toBe(7);
    expect(shares(limiter, [1, 200])).toEqual({ 1: 1 });
  });

  test("from the second slot of a quick endpoint, for the first slot of others", () => {
    const { limiter } = limiterOf(64, 4);
    const [quick, untried] = [range(20), 99];
    makeQuick(limiter, ...quick, 50);
    takeAll(limiter, quick);
    expect(limiter.free).toBe(15);
    expect(shares(limiter, [...quick, 50, untried])).toEqual({ 50: 1, [untried]: 1 });
  });

  test("from the first slots of busy quick endpoints, for untried ones", () => {
    const { limiter } = limiterOf(64, 4);
    makeQuick(limiter, ...range(100));
    const ends = takeAll(limiter, range(100));
    expect(limiter.free).toBe(0);
    for (const end of ends.slice(0, 5)) end(OK);
    expect(shares(limiter, [...range(100), ...range(10, 200)])).toMatchObject({ 200: 1, 201: 1, 202: 1, 203: 1 });
  });

  test.each([
    ["recovering", makeRecovering],
    ["slow", makeSlow],
  ])("from the second slots of busy quick endpoints, for %s ones", (_, make) => {
    const { limiter } = limiterOf(64, 4);
    const [quick, others] = [range(30), range(10, 200)];
    makeQuick(limiter, ...quick);
    make(limiter, ...others);
    const ends = takeAll(limiter, quick);
    expect([limiter.free, shares(limiter, [...quick, ...others])]).toEqual([15, {}]);
    // The first shops have two attempts each. One attempt of each shop ends.
    for (const n of range(6)) ends[2 * n]?.(OK);
    expect(shares(limiter, [...quick, ...others])).toMatchObject({ 200: 1, 201: 1, 202: 1, 203: 1 });
  });

  test("but not if there is only one slot", () => {
    for (const make of [makeQuick, makeSlow, () => undefined]) {
      const { limiter } = limiterOf(1, 4);
      make(limiter, 1);
      expect(shares(limiter, [1])).toEqual({ 1: 1 });
    }
  });
});
