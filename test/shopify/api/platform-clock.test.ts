import { expect, test } from "bun:test";
import { createPlatformClock } from "../../../src/shopify/api/platform-clock.ts";
import { START } from "../../support/app.ts";

/**
 * Makes a platform, and a clock of ours that is `aheadMs` ahead of the platform's clock. Each request says how long its
 * response takes.
 */
function clocks(aheadMs: number) {
  const state = { aheadMs, ms: START + 250, date: undefined as string | undefined };
  const answer = async (takesMs: number) => {
    const dateAt = Math.floor((state.ms + takesMs / 2) / 1_000) * 1_000;
    state.ms += takesMs;
    return new Response("", { headers: { Date: state.date ?? new Date(dateAt).toUTCString() } });
  };
  const fetch = Object.assign(async (takesMs: unknown) => answer(Number(takesMs)), { preconnect: () => undefined });
  const clock = createPlatformClock(fetch as unknown as typeof globalThis.fetch, () => state.ms + state.aheadMs);
  return { clock, state, ask: (takesMs: number) => clock.fetch(String(takesMs)) };
}

test.each([
  ["an hour ahead", 3_600_000],
  ["three seconds ahead", 3_000],
])("a clock that is %s is corrected, and never to a time that is too late", async (_title, aheadMs) => {
  const { clock, state, ask } = clocks(aheadMs);
  const mark = clock.mark();
  const markedAt = state.ms;
  expect(mark()).toBe(markedAt + aheadMs);
  await ask(200);
  expect(mark()).toBeLessThanOrEqual(markedAt);
  expect(mark()).toBeGreaterThan(markedAt - 1_200);
  expect(clock.now() - mark()).toBe(200);
});

test.each([
  ["right", 0],
  ["less than a second ahead", 200],
  ["behind", -5_000],
])("a clock that is %s stays as it is", async (_title, aheadMs) => {
  const { clock, state, ask } = clocks(aheadMs);
  for (const takesMs of [10, 900, 4_000]) await ask(takesMs);
  expect(clock.now()).toBe(state.ms + aheadMs);
});

test("a slow answer that does not contradict the clock changes nothing", async () => {
  const { clock, state, ask } = clocks(5_000);
  await ask(100);
  const offMs = state.ms - clock.now();
  await ask(20_000);
  expect(state.ms - clock.now()).toBe(offMs);
});

test("a clock that was set back counts as right after the next answer", async () => {
  const { clock, state, ask } = clocks(3_600_000);
  await ask(10);
  state.aheadMs = 0;
  expect(clock.now()).toBeLessThan(state.ms);
  await ask(10);
  expect(clock.now()).toBe(state.ms);
});

test.each([
  ["that was known to be ahead", 1],
  ["whose error was not known", 0],
])("a clock %s and is set right between a mark and its use gives no time in the future", async (_title, answers) => {
  const { clock, state, ask } = clocks(3_600_000);
  for (let count = 0; count < answers; count++) await ask(10);
  const mark = clock.mark();
  state.aheadMs = 0;
  await ask(10);
  expect(mark()).toBeLessThanOrEqual(state.ms);
});

test("an answer without a time that can be read changes nothing", async () => {
  const { clock, state, ask } = clocks(5_000);
  state.date = "yesterday";
  await ask(10);
  expect(clock.now()).toBe(state.ms + 5_000);
});
