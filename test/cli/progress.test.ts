import { expect, test } from "bun:test";
import { progressLine } from "../../src/cli/progress.ts";

test.each([
  [0, 1000, 0, 0, "0 records, 0/s"],
  [500, 1000, 40_000, 2, "████████████░░░░░░░░░░░░ 50%  40,000 records, 20,000/s, 2s left"],
  [10, 1000, 1_000, 1, "░░░░░░░░░░░░░░░░░░░░░░░░ 1%  1,000 records, 1,000/s, 1m 39s left"],
  [1000, 1000, 80_000, 4, "████████████████████████ 100%  80,000 records, 20,000/s, 0s left"],
  [500, undefined, 40_000, 2, "40,000 records, 20,000/s"],
])("%p of %p bytes", (bytes, total, records, elapsed, line) => {
  expect(progressLine(bytes, total, records, elapsed)).toBe(line);
});
