import { expect, test } from "bun:test";
import { createSteadyTime, isoUtc, parseUtc, spanText } from "../../src/lib/time.ts";

test.each([
  ["2026-01-31T09:30:00Z", "2026-01-31T09:30:00.000Z"],
  ["2026-01-31T09:30:00.5Z", "2026-01-31T09:30:00.500Z"],
  ["2026-01-31T09:30:00.123456Z", "2026-01-31T09:30:00.123Z"],
  ["2026-01-31T09:30:00+00:00", "2026-01-31T09:30:00.000Z"],
  ["2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z"],
])("%s is %s", (text, iso) => {
  expect(isoUtc(parseUtc(text) ?? Number.NaN)).toBe(iso);
});

test.each([
  ["2026-02-30T00:00:00.000Z", "in no calendar"],
  ["2025-02-29T00:00:00.000Z", "in no calendar"],
  ["2026-01-01T24:00:00.000Z", "in no day"],
  ["2026-01-01T00:00:60.000Z", "a leap second"],
  ["2026-01-01", "no time"],
  ["2026-01-01T00:00:00", "no zone"],
  ["2026-01-01T00:00:00+02:00", "not UTC"],
  ["2026-01-01 00:00:00Z", "no T"],
  ["+012026-01-01T00:00:00Z", "a year of six digits"],
  [" 2026-01-01T00:00:00Z", "a space before"],
  ["2026-01-01T00:00:00Z\n", "a line end behind"],
  ["", "empty"],
])("%p is not a date: %s", (text) => {
  expect(parseUtc(text)).toBeUndefined();
});

test.each([
  [-1, "0 s"],
  [999, "0 s"],
  [59_999, "59 s"],
  [60_000, "1 min"],
  [3_599_999, "59 min"],
  [3_600_000, "1 h"],
  [86_399_999, "23 h"],
  [86_400_000, "1 day"],
  [172_800_000, "2 days"],
])("a span of %d ms is written as %s", (ms, text) => {
  expect(spanText(ms)).toBe(text);
});

test("a steady time ignores changes of the clock", () => {
  const at = { now: 1_000_000, clock: 5.25 };
  const time = createSteadyTime(
    () => at.now,
    () => at.clock,
  );
  expect(time()).toBe(1_000_000);
  at.now -= 500_000;
  at.clock += 10.5;
  expect(time()).toBe(1_000_011);
});
