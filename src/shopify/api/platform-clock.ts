/** The platform writes its time in whole seconds. */
const RESOLUTION_MS = 1_000;

/**
 * The platform's time, for comparisons with times of the platform. If our clock were ahead, a reading would seem newer
 * than a change that it does not show. So answers correct our clock if it is ahead. A clock that is behind is harmless:
 * readings only look older than they are.
 */
export interface PlatformClock {
  /** The platform's time as known from its answers, in epoch milliseconds. It is never later than our clock. */
  now(): number;
  /** Marks now. Call the result after the next answer, for the best estimate of the platform's time at the mark. */
  mark(): () => number;
  /** A fetch that reads the platform's time from each answer. */
  fetch: typeof globalThis.fetch;
}

/** @param now our own clock, epoch milliseconds */
export function createPlatformClock(fetch: typeof globalThis.fetch, now: () => number): PlatformClock {
  /** Upper bound of how far our clock is ahead. */
  let aheadMs = 0;

  function noteAnswer({ headers }: Response, sentAt: number): void {
    const date = Date.parse(headers.get("date") ?? "");
    if (Number.isNaN(date)) return;
    const mostMs = now() - date;
    const leastMs = sentAt - (date + RESOLUTION_MS);
    // The known value is kept if it is within the bounds, because a slow answer has wide bounds.
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
      // If our clock was set back after the mark, `at` is in the future. So the result is at most `now()`.
      return () => Math.min(believed, at - aheadMs, now() - aheadMs);
    },
    fetch: Object.assign(datedFetch, { preconnect: fetch.preconnect }),
  };
}
