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
  [0.5, 59, "████████████░░░░░░░░░░░░ 50%  0 records, 59s left"],
  [0.5, 60, "████████████░░░░░░░░░░░░ 50%  0 records, 1m 0s left"],
  [0.5, 119, "████████████░░░░░░░░░░░░ 50%  0 records, 1m 59s left"],
  [1, 4, "████████████████████████ 100%  0 records, 0s left"],
  [1.2, 4, "████████████████████████ 100%  0 records, 0s left"],
  [undefined, 2, "0 records"],
  [Number.NaN, 2, "0 records"],
])("%p done after %p s", (done, elapsed, line) => {
  expect(progressLine(done, "0 records", elapsed)).toBe(line);
});

/** @returns what a bar writes to a stream when it is updated twice at the same time */
function drawTwice(isTTY: boolean): string[] {
  const written: string[] = [];
  const bar = createProgressBar({ isTTY, write: (text: string) => written.push(text) > 0 } as NodeJS.WriteStream);
  bar.update(undefined, "1 record");
  bar.update(undefined, "2 records");
  bar.end();
  return written;
}

test("of updates in quick succession, only the first is drawn", () => {
  expect(drawTwice(true)).toEqual(["\r\x1b[K1 record", "\r\x1b[K"]);
});

test("the time left comes from the last minute, so it is right soon after the speed changed", () => {
  let now = 0;
  let line = "";
  const write = (text: string) => {
    line = text;
    return true;
  };
  const stream = { isTTY: true, write } as unknown as NodeJS.WriteStream;
  const bar = createProgressBar(stream, () => now);
  for (let second = 0; second <= 200; second += 1) {
    now = second * 1_000;
    // 25 % in the first ten seconds, and then 0.1 % each second.
    bar.update(second < 10 ? second / 40 : 0.25 + (second - 10) / 1_000, "");
  }
  // 44 % are done. At 0.1 % each second, the rest takes 560 seconds.
  expect(line).toContain(", 9m 20s left");
  for (const done of [0.001, 0.002]) {
    now += 1_000;
    bar.update(done, "");
  }
  expect(line).toContain("16m 38s left");
});

test("the bar is drawn only on a terminal", () => {
  expect(drawTwice(false)).toEqual([]);
});
