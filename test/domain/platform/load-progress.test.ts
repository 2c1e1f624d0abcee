import { expect, test } from "bun:test";
import { loadText } from "../../../src/domain/platform/load-progress.ts";
import { NO_COUNTS } from "../../../src/domain/platform/sync.ts";

const MINUTE_MS = 60_000;

test.each([
  [MINUTE_MS - 1, "less than a minute left"],
  [MINUTE_MS, "1 minute left"],
  [MINUTE_MS + 1, "2 minutes left"],
  [119 * MINUTE_MS, "119 minutes left"],
  [120 * MINUTE_MS, "2 hours left"],
  [120 * MINUTE_MS + 1, "3 hours left"],
])("the time left of a load, %i ms, is shown as %s", (leftMs, left) => {
  const counts = { ...NO_COUNTS, customers: 250 };
  expect(loadText({ stage: "customers", counts, done: 0.5, leftMs })).toBe(`250 of 500 customers, ${left}`);
});
