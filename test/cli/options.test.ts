import { expect, test } from "bun:test";
import { parseChoice, parseLimit, parseSince, splitList } from "../../src/cli/options.ts";

test("--limit is a whole number from 1 to 10000", () => {
  expect([parseLimit("1"), parseLimit("10000")]).toEqual([1, 10_000]);
  for (const text of ["0", "10001", "-1", "1.5", "x", ""]) {
    expect(() => parseLimit(text)).toThrow(`--limit is "${text}": it must be a whole number from 1 to 10000`);
  }
});

test("--since is a date in UTC, or an age that is counted back from now", () => {
  expect(parseSince("2026-01-31T09:30:00Z")).toBe(Date.parse("2026-01-31T09:30:00.000Z"));
  const before = Date.now() - 2 * 3_600_000;
  expect(parseSince("2h")).toBeWithin(before, Date.now() - 2 * 3_600_000 + 1);
  expect(() => parseSince("yesterday")).toThrow(
    '--since is "yesterday": it must be a date like 2026-01-31T09:30:00Z or an age like 2h',
  );
});

test("an option with a few values refuses another value, and names the right ones", () => {
  expect(parseChoice("--kind", "trigger", ["webhook", "trigger"])).toBe("trigger");
  expect(() => parseChoice("--kind", "Trigger", ["webhook", "trigger"])).toThrow(
    '--kind is "Trigger": it must be one of webhook, trigger',
  );
});

test("a list can have spaces after its commas", () => {
  expect(splitList("a, b,c")).toEqual(["a", "b", "c"]);
});
