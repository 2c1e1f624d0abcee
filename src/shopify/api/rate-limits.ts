import { createRateLimiter, type RateLimiter } from "../../lib/rate-limiter.ts";
import type { QueryCost } from "./graphql-response.ts";

/**
 * Purposes of requests, most urgent first. Attempts are first: somebody may be waiting for the e-mail about a failed
 * payment.
 */
const PRIORITIES = ["attempt", "contract", "order", "reconcile", "load"] as const;
export type Priority = (typeof PRIORITIES)[number];

/** The properties that decide a query's cost. Queries of one operation and one size cost the same. */
export interface QueryShape {
  operationName: string;
  /** Number of requested nodes; 1 if the operation always requests the same number. */
  size: number;
}

/**
 * The fraction of a shop's maximum points that a load leaves to other programs. `sds sync` and `serve` share points,
 * but cannot see each other's waiting requests. The unused points ensure that `serve` can always send requests.
 */
const LOAD_SPARE_PART = 0.5;

/** Ends the reservation of points. `cost` is the reported cost; undefined if the response reports no cost. */
export type ReleasePoints = (cost: QueryCost | undefined) => void;

export type RateLimits = ReturnType<typeof createRateLimits>;

/**
 * Delays requests until the shop has enough points. The first response to an operation tells the operation's cost.
 * Until then, only one request of this operation is sent for each shop, and further requests wait.
 */
export function createRateLimits(clock: () => number, sleep: (waitMs: number) => Promise<void>) {
  const limiters = new Map<number, RateLimiter>();
  const costs = createQueryCosts();
  /** For each shop and operation of unknown cost: the first request, which is running. */
  const firsts = new Map<string, Promise<void>>();

  function limiterOf(shopId: number): RateLimiter {
    const limiter = limiters.get(shopId) ?? createRateLimiter(clock, sleep);
    limiters.set(shopId, limiter);
    return limiter;
  }

  /**
   * Waits until the cost is known. Only the first request does not wait.
   * @returns a function to call after the response
   */
  async function begin(shopId: number, query: QueryShape): Promise<() => void> {
    const key = `${shopId} ${query.operationName}`;
    while (costs.estimate(query) === undefined && firsts.has(key)) await firsts.get(key);
    if (costs.estimate(query) !== undefined) return () => {};
    const { promise, resolve } = Promise.withResolvers<void>();
    firsts.set(key, promise);
    return () => {
      firsts.delete(key);
      resolve();
    };
  }

  return {
    /** Returns the lowest number of points that any shop has now; undefined before the first report. */
    fewestPoints(): number | undefined {
      const points = [...limiters.values()].flatMap((limiter) => limiter.available() ?? []);
      return points.length === 0 ? undefined : points.reduce((least, each) => Math.min(least, each));
    },

    /** Waits until the shop should have enough points. @returns a function to call after the response */
    async reserve(shopId: number, query: QueryShape, priority: Priority): Promise<ReleasePoints> {
      const end = await begin(shopId, query);
      const cost = costs.estimate(query) ?? 0;
      const sparePart = priority === "load" ? LOAD_SPARE_PART : 0;
      const release = await limiterOf(shopId).reserve(cost, PRIORITIES.indexOf(priority), sparePart);
      return (reported) => {
        if (reported !== undefined) costs.note(query, reported.requestedQueryCost);
        release(reported?.throttleStatus);
        end();
      };
    },
  };
}

/** The costs of queries in points, learned from responses. */
function createQueryCosts() {
  /** The costs by operation and size. */
  const known = new Map<string, Map<number, number>>();

  return {
    /** Estimates the cost of a query, rather too high than too low; undefined before the operation's first response. */
    estimate({ operationName, size }: QueryShape): number | undefined {
      const costs = known.get(operationName);
      if (costs === undefined) return undefined;
      const larger = [...costs.keys()].filter((each) => each >= size);
      if (larger.length > 0) return costs.get(Math.min(...larger));
      // This estimate is rarely too low: it grows in proportion to the size, but the platform's cost grows more slowly.
      const largest = Math.max(...costs.keys());
      return Math.ceil(((costs.get(largest) ?? 0) * size) / largest);
    },
    note({ operationName, size }: QueryShape, cost: number): void {
      const costs = known.get(operationName) ?? new Map<number, number>();
      known.set(operationName, costs.set(size, cost));
    },
  };
}
