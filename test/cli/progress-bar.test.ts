import { expect, test } from "bun:test";
import { createProgressBar, progressLine, rateText } from "../../src/cli/progress-bar.ts";

test.each([
  [0, 0, "0 records, 0/s"],
  [40_000, 2, "40,000 records, 20,000/s"],
])("%p records in %p s", (records, elapsed, text) => {
  expect(rateText(records, elapsed)).toBe(text);
});

test.each([
  [0.5, 0.5, "████████████░░░░░░░░░░░░ 50%  0 records"],
  [0.75, 0.5, "██████████████████░░░░░░ 75%  0 records, 2s left"],
])("the time left at %p is measured from %p on", (done, from, line) => {
  expect(progressLine(done, "0 records", 2, from)).toBe(line);
});

test.each([
  [0, 0, "0 records"],
  [0.5, 2, "████████████░░░░░░░░░░░░ 50%  0 records, 2s left"],
  [0.01, 1, "░░░░░░░░░░░░░░░░░░░░░░░░ 1%  0 records, 1m 39s left"],
  [1, 4, "████████████████████████ 100%  0 records, 0s left"],
  [1.2, 4, "████████████████████████ 100%  0 records, 0s left"],
  [undefined, 2, "0 records"],
  [Number.NaN, 2, "0 records"],
])("%p done after %p s", (done, elapsed, line) => {
  expect(progressLine(done, "0 records", elapsed)).toBe(line);
});

/** @returns what a bar writes to a stream when it is updated twice at once */
function drawTwice(isTTY: boolean): string[] {
  const written: string[] = [];
  const bar = createProgressBar({ isTTY, write: (text: string) => written.push(text) > 0 } as NodeJS.WriteStream);
  bar.update(undefined, "1 record");
  bar.update(undefined, "2 records");
  bar.end();
  return written;
}

test("updates that follow at once are drawn once", () => {
  expect(drawTwice(true)).toEqual(["\r\x1b[K1 record", "\r\x1b[K"]);
});

test("no bar is drawn where there is no terminal", () => {
  expect(drawTwice(false)).toEqual([]);
});
