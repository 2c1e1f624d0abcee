/** The longest wait for points, whatever the server says. */
const MAX_WAIT_MS = 60_000;
/**
 * One point in so many goes to the caller who has waited longest, whatever its priority. So a constant flow of urgent
 * requests slows the others down, but never stops them; and urgent requests keep nine points in ten.
 */
const POINTS_PER_SHARED_POINT = 10;

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
  /**
   * Waits until enough points should be available, and reserves them.
   * @param priority the lowest number is served first; callers of one priority are served in the order of their calls
   */
  reserve(cost: number, priority: number): Promise<Release>;
}

interface Caller {
  cost: number;
  priority: number;
  /** Grants the points. */
  proceed: () => void;
}

/**
 * Keeps requests within the points of one server, so that the server refuses none. The points are a leaky bucket, and
 * the responses say how full it is.
 * @param clock milliseconds of a clock that only goes forward
 */
export function createRateLimiter(clock: () => number, sleep: (waitMs: number) => Promise<void>): RateLimiter {
  const queue = createCallerQueue();
  let status: ThrottleStatus | undefined;
  let statusAt = 0;
  /** Points of requests without a response so far. The server may have taken them already or not. */
  let reserved = 0;
  let serving = false;
  /** Whom the points are being saved for, and how to interrupt this. */
  let savingFor: { caller: Caller; interrupt: () => void } | undefined;

  function waitFor(cost: number): number {
    if (status === undefined) return 0;
    const { maximumAvailable, currentlyAvailable, restoreRate } = status;
    const restored = ((clock() - statusAt) / 1000) * restoreRate;
    const available = Math.min(maximumAvailable, currentlyAvailable + restored) - reserved;
    if (available >= cost || restoreRate <= 0) return 0;
    return Math.min(Math.ceil(((cost - available) / restoreRate) * 1000), MAX_WAIT_MS);
  }

  /** Waits for the points of a caller. @returns whether the wait was interrupted by a more urgent caller */
  async function save(caller: Caller): Promise<boolean> {
    const waitMs = waitFor(caller.cost);
    if (waitMs === 0) return false;
    const { promise: interrupted, resolve } = Promise.withResolvers<boolean>();
    savingFor = { caller, interrupt: () => resolve(true) };
    const isInterrupted = await Promise.race([sleep(waitMs).then(() => false), interrupted]);
    savingFor = undefined;
    return isInterrupted;
  }

  async function serve(): Promise<void> {
    if (serving) return;
    serving = true;
    for (let next = queue.next(); next !== undefined; next = queue.next()) {
      if (await save(next)) continue;
      queue.remove(next);
      reserved += next.cost;
      next.proceed();
    }
    serving = false;
  }

  return {
    async reserve(cost, priority) {
      const { promise, resolve } = Promise.withResolvers<void>();
      queue.add({ cost, priority, proceed: resolve });
      if (savingFor !== undefined && queue.next() !== savingFor.caller) savingFor.interrupt();
      void serve();
      await promise;
      return (newStatus) => {
        reserved -= cost;
        if (newStatus === undefined) return;
        status = newStatus;
        statusAt = clock();
      };
    },
  };
}

/** Those who wait for points. */
function createCallerQueue() {
  /** In the order of their calls. */
  const waiting: Caller[] = [];
  /** Points that are due to the caller who has waited longest, because others went first. */
  let owed = 0;
  return {
    add(caller: Caller): void {
      waiting.push(caller);
    },
    /** Whose turn it is. */
    next(): Caller | undefined {
      const [oldest] = waiting;
      if (oldest === undefined || oldest.cost <= owed) return oldest;
      return waiting.reduce((first, caller) => (caller.priority < first.priority ? caller : first), oldest);
    },
    remove(caller: Caller): void {
      const index = waiting.indexOf(caller);
      waiting.splice(index, 1);
      if (index > 0) owed += caller.cost / (POINTS_PER_SHARED_POINT - 1);
      else owed = Math.max(0, owed - caller.cost);
      if (waiting.length === 0) owed = 0;
    },
  };
}
