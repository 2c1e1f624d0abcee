import { describe, expect, test } from "bun:test";
import type { Ending } from "../../src/delivery/paces.ts";
import { limiterOf, OK, range, TIMEOUT, URL, webhooks } from "./limiters.ts";

/**
 * A simulated endpoint: whether it answers an attempt that begins at `atMs`. An answer takes 20 ms. Without an answer
 * the attempt takes its timeout of 10 s.
 */
type Answers = (atMs: number) => boolean;

/**
 * Simulates 35 s, longer than three timeouts. Every shop always has deliveries due.
 * @returns the longest time that the last shop waited without a slot
 */
function longestWait(endpoints: readonly Answers[]): number {
  const { limiter, clock } = limiterOf(512, 4);
  const last = endpoints.length;
  const due = range(last);
  let running: { shopId: number; endsAtMs: number; giveBack: (ending: Ending) => unknown; hangs: boolean }[] = [];
  let waitingSinceMs: number | undefined = 0;
  let longestMs = 0;
  for (; clock.ms < 35_000; clock.ms += 10) {
    for (const { endsAtMs, giveBack, hangs } of running) if (endsAtMs <= clock.ms) giveBack(hangs ? TIMEOUT : OK);
    running = running.filter(({ endsAtMs }) => endsAtMs > clock.ms);
    do {
      for (const [shopId, share] of limiter.share(webhooks(due))) {
        const hangs = !endpoints[shopId - 1]?.(clock.ms);
        const endsAtMs = clock.ms + (hangs ? 10_000 : 20);
        for (let n = 0; n < share; n += 1)
          running.push({ shopId, endsAtMs, hangs, giveBack: limiter.take(shopId, "webhook", URL) });
      }
    } while (limiter.heldBack);
    const waits = !running.some(({ shopId }) => shopId === last);
    waitingSinceMs = waits ? (waitingSinceMs ?? clock.ms) : undefined;
    longestMs = Math.max(longestMs, clock.ms - (waitingSinceMs ?? clock.ms));
  }
  return longestMs;
}

describe("a shop whose endpoint answers does not wait", () => {
  const answers = () => true;
  const hangs = () => false;
  const flaps = (phaseMs: number, everyMs: number) => (atMs: number) => (atMs + phaseMs) % everyMs < everyMs / 2;
  const times = (count: number, endpoint: (index: number) => Answers) =>
    Array.from({ length: count }, (_, n) => endpoint(n));

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
    expect(longestWait([...others, answers])).toBeLessThanOrEqual(20);
  });
});
