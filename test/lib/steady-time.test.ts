import { expect, test } from "bun:test";
import { createSteadyTime } from "../../src/lib/steady-time.ts";

test("the time goes on from the time of day at the start, whatever somebody sets", () => {
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
