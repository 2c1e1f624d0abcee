/** The platform writes its time in whole seconds. */
const RESOLUTION_MS = 1_000;

/**
 * The platform's time, for everything that is compared with times of the platform: a clock of ours that is ahead would
 * date a reading after a change that it does not show. What answers say is believed only if our clock is ahead. If it
 * is behind, readings look older than they are, and that loses nothing.
 */
export interface PlatformClock {
  /** Epoch milliseconds: the platform's time as far as answers have told, and never later than our clock. */
  now(): number;
  /** Notes this moment. @returns the platform's time of it, which is best known after the next answer */
  mark(): () => number;
  /** A fetch that learns from each answer what time it is at the platform. */
  fetch: typeof globalThis.fetch;
}

/** @param now our own clock, epoch milliseconds */
export function createPlatformClock(fetch: typeof globalThis.fetch, now: () => number): PlatformClock {
  /** How far our clock is ahead, at the most that is possible. */
  let aheadMs = 0;

  function noteAnswer({ headers }: Response, sentAt: number): void {
    const date = Date.parse(headers.get("date") ?? "");
    if (Number.isNaN(date)) return;
    const mostMs = now() - date;
    const leastMs = sentAt - (date + RESOLUTION_MS);
    // What is known stays while it is possible, because a slow answer tells little.
    if (aheadMs < leastMs || aheadMs > mostMs) aheadMs = leastMs > 0 ? mostMs : 0;
  }

  async function datedFetch(...args: Parameters<typeof globalThis.fetch>): Promise<Response> {
    const sentAt = now();
    const response = await fetch(...args);
    noteAnswer(response, sentAt);
    return response;
  }

  return {
    now: () => now() - aheadMs,
    mark() {
      const at = now();
      const believed = at - aheadMs;
      // Our clock may be set right meanwhile. Then `at` is in the future.
      return () => Math.min(believed, at - aheadMs, now() - aheadMs);
    },
    fetch: Object.assign(datedFetch, { preconnect: fetch.preconnect }),
  };
}
