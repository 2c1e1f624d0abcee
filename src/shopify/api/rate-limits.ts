import { createRateLimiter, type RateLimiter } from "../../lib/rate-limiter.ts";
import type { QueryCost } from "./graphql-response.ts";
import { createQueryCosts, type QueryShape } from "./query-costs.ts";

/**
 * What requests are for, the most urgent first. A failed payment may need an e-mail now; a first load takes hours
 * anyway. Requests that name nothing are made for somebody who waits, so they are as urgent as attempts.
 */
const PRIORITIES = ["attempt", "contract", "order", "reconcile", "load"] as const;
export type Priority = (typeof PRIORITIES)[number];

/**
 * `sds sync` and `serve` are two programs with the same points, and neither knows what waits in the other. So a load
 * leaves half of the points that can be saved up: then `serve` always finds some.
 */
const LOAD_SPARE_PART = 0.5;

/** Gives reserved points back, with the cost that the response reports; undefined if it reports none. */
export type ReleasePoints = (cost: QueryCost | undefined) => void;

export interface RateLimits {
  /** Waits until the shop should have the points of a query. @returns to be called once the response is there */
  reserve(shopId: number, query: QueryShape, priority: Priority): Promise<ReleasePoints>;
}

/**
 * The points of each shop. What a query costs is known from earlier responses. A shop's first request of an operation
 * whose cost is not known goes alone, and the shop's others wait for its end.
 */
export function createRateLimits(clock: () => number, sleep: (waitMs: number) => Promise<void>): RateLimits {
  const limiters = new Map<number, RateLimiter>();
  const costs = createQueryCosts();
  /** The first requests of operations whose cost is not known, by shop. */
  const firsts = new Map<string, Promise<void>>();

  function limiterOf(shopId: number): RateLimiter {
    const limiter = limiters.get(shopId) ?? createRateLimiter(clock, sleep);
    limiters.set(shopId, limiter);
    return limiter;
  }

  /**
   * Waits until the cost of an operation is known, or until its first request is to be made. @returns to end that one
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
    async reserve(shopId, query, priority) {
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
