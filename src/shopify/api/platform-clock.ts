/** The platform writes its time in whole seconds. */
const RESOLUTION_MS = 1_000;

/**
 * The platform's time. A reading includes all changes before its start. If our clock is ahead, the noted start is too
 * late, and a change can be missed. So the platform's responses correct a clock that is ahead. A clock that is behind
 * is harmless: some changes are only read twice.
 */
export interface PlatformClock {
  /** The platform's time, estimated from its responses, in epoch milliseconds. It is never later than our clock. */
  now(): number;
  /** Like `now`, but never earlier than the time in the platform's last response, even if our clock is behind. */
  sinceAnswer(): number;
  /**
   * Remembers the moment of this call. The returned function estimates the platform's time at that moment. Call the
   * returned function after the next response.
   */
  mark(): () => number;
  /** A fetch that reads the platform's time from each response. */
  fetch: typeof globalThis.fetch;
}

/** @param now our own clock, epoch milliseconds */
export function createPlatformClock(fetch: typeof globalThis.fetch, now: () => number): PlatformClock {
  /** Upper bound of how far our clock is ahead. */
  let aheadMs = 0;
  /** The time in the last response. */
  let answeredAt = 0;

  function noteAnswer({ headers }: Response, sentAt: number): void {
    const date = Date.parse(headers.get("date") ?? "");
    if (Number.isNaN(date)) return;
    answeredAt = date;
    const mostMs = now() - date;
    const leastMs = sentAt - (date + RESOLUTION_MS);
    // A slow response gives wide bounds. So the known value is kept if it is within the bounds.
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
    sinceAnswer: () => Math.max(now() - aheadMs, answeredAt),
    mark() {
      const at = now();
      const believed = at - aheadMs;
      // If our clock was set back after `mark` was called, `at` is in the future. So the result is limited to `now()`.
      return () => Math.min(believed, at - aheadMs, now() - aheadMs);
    },
    fetch: Object.assign(datedFetch, { preconnect: fetch.preconnect }),
  };
}
