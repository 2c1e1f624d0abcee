import { describe, expect, test } from "bun:test";
import type { Ending } from "../../src/delivery/concurrency-limiter.ts";
import { limiterOf, OK, range, TIMEOUT, URL, webhooks } from "./limiters.ts";

/**
 * A simulated endpoint. Returns whether it answers an attempt that begins at `atMs`. An answer takes 20 ms; without an
 * answer, the attempt ends at its timeout of 10 s.
 */
type Answers = (atMs: number) => boolean;

/**
 * Simulates 35 s, longer than three timeouts. Every shop always has deliveries due.
 * @returns for the last shop: the longest time without a slot, and the time from its first answer to its fourth slot
 */
function simulate(endpoints: readonly Answers[]): { longestMs: number; untilFullMs: number } {
  const { limiter, clock } = limiterOf(512, 4);
  const last = endpoints.length;
  const due = range(last);
  let running: { shopId: number; endsAtMs: number; giveBack: (ending: Ending) => unknown; hangs: boolean }[] = [];
  let waitingSinceMs: number | undefined = 0;
  let longestMs = 0;
  let answeredAtMs = Number.NaN;
  let fullAtMs = Number.NaN;
  for (; clock.ms < 35_000; clock.ms += 20) {
    for (const { shopId, endsAtMs, giveBack, hangs } of running) {
      if (endsAtMs > clock.ms) continue;
      giveBack(hangs ? TIMEOUT : OK);
      if (shopId === last && !hangs && Number.isNaN(answeredAtMs)) answeredAtMs = clock.ms;
    }
    running = running.filter(({ endsAtMs }) => endsAtMs > clock.ms);
    do {
      for (const { shopId, count } of limiter.share(webhooks(due))) {
        const hangs = !endpoints[shopId - 1]?.(clock.ms);
        const endsAtMs = clock.ms + (hangs ? 10_000 : 20);
        for (let n = 0; n < count; n += 1)
          running.push({ shopId, endsAtMs, hangs, giveBack: limiter.take(shopId, "webhook", URL) });
      }
    } while (limiter.heldBack);
    const slots = running.filter(({ shopId }) => shopId === last).length;
    if (slots === 4 && Number.isNaN(fullAtMs)) fullAtMs = clock.ms;
    const waits = slots === 0;
    waitingSinceMs = waits ? (waitingSinceMs ?? clock.ms) : undefined;
    longestMs = Math.max(longestMs, clock.ms - (waitingSinceMs ?? clock.ms));
  }
  return { longestMs, untilFullMs: fullAtMs - answeredAtMs };
}

const answers = () => true;
const hangs = () => false;
const recovers = (atMs: number) => atMs >= 1_000;
const flaps = (phaseMs: number, everyMs: number) => (atMs: number) => (atMs + phaseMs) % everyMs < everyMs / 2;
const times = (count: number, endpoint: (index: number) => Answers) =>
  Array.from({ length: count }, (_, n) => endpoint(n));

describe("a shop whose endpoint answers does not wait", () => {
  test.each<[string, Answers[]]>([
    ["128 hang", times(128, () => hangs)],
    ["300 hang and 100 flap together", [...times(300, () => hangs), ...times(100, () => flaps(0, 4_000))]],
    [
      "300 hang and 100 flap one after the other",
      [...times(300, () => hangs), ...times(100, (n) => flaps(n * 97, 6_000))],
    ],
    [
      "300 hang and 100 begin to hang together",
      [...times(300, () => hangs), ...times(100, () => (atMs) => atMs < 5_000)],
    ],
    ["400 answer and then hang together", times(400, () => (atMs) => atMs < 5_000)],
  ])("although %s, from a cold start", (_name, others) => {
    expect(simulate([...others, answers]).longestMs).toBeLessThanOrEqual(20);
  });
});

test.each<[string, Answers[]]>([
  ["", []],
  [" beside 300 that hang", times(300, () => hangs)],
  [" beside 50 that hang and 40 that recovered too", [...times(50, () => hangs), ...times(40, () => recovers)]],
])("an endpoint that answers again after a timeout has all slots within a second%s", (_name, others) => {
  expect(simulate([...others, recovers]).untilFullMs).toBeLessThan(1_000);
});
