/** Maximum wait for points, even if the server's report means a longer wait. */
const MAX_WAIT_MS = 60_000;
/**
 * One point in ten goes to the caller who has waited longest, whatever the caller's priority. So a constant flow of
 * urgent requests slows the other callers down, but never stops them.
 */
const POINTS_PER_SHARED_POINT = 10;

/** A server's latest report of its points. */
export interface ThrottleStatus {
  maximumAvailable: number;
  currentlyAvailable: number;
  /** Points per second. */
  restoreRate: number;
}

/** Gives reserved points back. @param status from the response; undefined if the response had no status */
type Release = (status: ThrottleStatus | undefined) => void;

export interface RateLimiter {
  /**
   * Waits until enough points should be available, and reserves them.
   * @param priority the lowest number first; within a priority, first come, first served
   * @param sparePart share of all points, 0 to 1, to leave to other programs. It is ignored while a more urgent caller
   *   waits
   */
  reserve(cost: number, priority: number, sparePart?: number): Promise<Release>;
  /** Returns the points that should be available now; undefined before the server's first report. */
  available(): number | undefined;
}

interface Caller {
  cost: number;
  priority: number;
  sparePart: number;
  /** Grants the points to the caller. */
  proceed: () => void;
}

/**
 * Keeps requests within the points of one server. The points form a leaky bucket. Responses say how full the bucket is.
 * @param clock milliseconds of a clock that only goes forward
 */
export function createRateLimiter(clock: () => number, sleep: (waitMs: number) => Promise<void>): RateLimiter {
  const queue = createCallerQueue();
  let status: ThrottleStatus | undefined;
  let statusAt = 0;
  /** Points of requests that have no response yet. The server may have taken these points already. */
  let reserved = 0;
  let serving = false;
  /** The caller for whom the limiter waits until the server has restored enough points. `interrupt` ends this wait. */
  let savingFor: { caller: Caller; interrupt: () => void } | undefined;

  function available(): number | undefined {
    if (status === undefined) return undefined;
    const restored = ((clock() - statusAt) / 1000) * status.restoreRate;
    return Math.min(status.maximumAvailable, status.currentlyAvailable + restored) - reserved;
  }

  function waitFor({ cost, priority, sparePart }: Caller): number {
    if (status === undefined) return 0;
    const { maximumAvailable, restoreRate } = status;
    const points = available() ?? 0;
    const spare = queue.hasMoreUrgent(priority) ? 0 : sparePart * maximumAvailable;
    const needed = Math.max(cost, Math.min(cost + spare, maximumAvailable));
    if (points >= needed || restoreRate <= 0) return 0;
    return Math.min(Math.ceil(((needed - points) / restoreRate) * 1000), MAX_WAIT_MS);
  }

  /** Waits until a caller's points are restored. @returns whether the wait was interrupted by a more urgent caller */
  async function save(caller: Caller): Promise<boolean> {
    const waitMs = waitFor(caller);
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
    available,
    async reserve(cost, priority, sparePart = 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      queue.add({ cost, priority, sparePart, proceed: resolve });
      const saver = savingFor?.caller;
      const savesSpare = saver !== undefined && saver.sparePart > 0 && priority < saver.priority;
      if (savesSpare || queue.next() !== saver) savingFor?.interrupt();
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

/** Creates the queue of callers that wait for points. */
function createCallerQueue() {
  /** Sorted by the time of the call. */
  const waiting: Caller[] = [];
  /** Points that the limiter owes to the caller who has waited longest, because other callers were served first. */
  let owed = 0;
  return {
    add(caller: Caller): void {
      waiting.push(caller);
    },
    hasMoreUrgent: (priority: number): boolean => waiting.some((caller) => caller.priority < priority),
    /** Returns the caller to serve next. */
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
