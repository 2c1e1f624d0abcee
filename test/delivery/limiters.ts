import {
  type ConcurrencyLimiter,
  createConcurrencyLimiter,
  type Ending,
} from "../../src/delivery/concurrency-limiter.ts";

export const URL = "https://hooks.example.com/";
export const MINUTE = 60_000;
export const OK: Ending = { timedOut: false };
export const TIMEOUT: Ending = { timedOut: true };

/** Returns a queue of due webhooks for each of these shops. */
export const webhooks = (shopIds: number[]) => shopIds.map((shopId) => ({ shopId, kind: "webhook" as const }));

/** Makes a limiter whose clock the test sets. */
export function limiterOf(total: number, perShop: number) {
  const clock = { ms: 0 };
  return { clock, limiter: createConcurrencyLimiter(total, perShop, () => clock.ms) };
}

/** Lets the endpoints of these shops answer at once, until each shop has at least four slots. */
export function makeQuick(limiter: ConcurrencyLimiter, ...shopIds: number[]): void {
  for (const shopId of shopIds) for (let n = 0; n < 4; n += 1) limiter.take(shopId, "webhook", URL)(OK);
}

/** Makes the endpoints of these shops slow. */
export function makeSlow(limiter: ConcurrencyLimiter, ...shopIds: number[]): void {
  for (const shopId of shopIds) limiter.take(shopId, "webhook", URL)(TIMEOUT);
}

/** Lets the endpoints of these shops time out, and then answer at once. */
export function makeRecovering(limiter: ConcurrencyLimiter, ...shopIds: number[]): void {
  makeSlow(limiter, ...shopIds);
  makeQuick(limiter, ...shopIds);
}

/** Returns the slots that each of these shops may have now. */
export function shares(limiter: ConcurrencyLimiter, due: number[]): Record<number, number> {
  return Object.fromEntries(limiter.share(webhooks(due)).map(({ shopId, count }) => [shopId, count]));
}

/** Takes all slots that these shops may have. @returns functions that free the slots */
export function takeAll(limiter: ConcurrencyLimiter, due: number[]): ((ending: Ending) => unknown)[] {
  const taken: ((ending: Ending) => unknown)[] = [];
  do {
    for (const { shopId, count } of limiter.share(webhooks(due)))
      for (let n = 0; n < count; n += 1) taken.push(limiter.take(shopId, "webhook", URL));
  } while (limiter.heldBack);
  return taken;
}

/** Returns consecutive shop ids. */
export const range = (count: number, from = 1) => Array.from({ length: count }, (_, n) => n + from);
