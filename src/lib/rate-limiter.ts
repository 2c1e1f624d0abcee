import { createKeyedMutex } from "./keyed-mutex.ts";

/** The longest wait for points, whatever the server says. */
const MAX_WAIT_MS = 60_000;

/** What a server last said about its points. */
export interface ThrottleStatus {
  maximumAvailable: number;
  currentlyAvailable: number;
  /** Points per second. */
  restoreRate: number;
}

/** Gives reserved points back. `status` is what the response said; undefined if it said nothing. */
type Release = (status: ThrottleStatus | undefined) => void;

export interface RateLimiter {
  /** Waits until enough points should be available, and reserves them. Callers wait in the order of their calls. */
  reserve(cost: number): Promise<Release>;
}

/**
 * Keeps requests within the points of one server, so that the server refuses none. The points are a leaky bucket, and
 * the responses say how full it is.
 * @param clock milliseconds of a clock that only goes forward
 */
export function createRateLimiter(clock: () => number, sleep: (waitMs: number) => Promise<void>): RateLimiter {
  const turns = createKeyedMutex();
  let status: ThrottleStatus | undefined;
  let statusAt = 0;
  /** Points of requests without a response so far. The server may have taken them already or not. */
  let reserved = 0;

  function waitFor(cost: number): number {
    if (status === undefined) return 0;
    const { maximumAvailable, currentlyAvailable, restoreRate } = status;
    const restored = ((clock() - statusAt) / 1000) * restoreRate;
    const available = Math.min(maximumAvailable, currentlyAvailable + restored) - reserved;
    if (available >= cost || restoreRate <= 0) return 0;
    return Math.min(Math.ceil(((cost - available) / restoreRate) * 1000), MAX_WAIT_MS);
  }

  return {
    async reserve(cost) {
      await turns.run("", async () => {
        const waitMs = waitFor(cost);
        if (waitMs > 0) await sleep(waitMs);
        reserved += cost;
      });
      return (newStatus) => {
        reserved -= cost;
        if (newStatus === undefined) return;
        status = newStatus;
        statusAt = clock();
      };
    },
  };
}
