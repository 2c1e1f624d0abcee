import type { Awaitable } from "../../lib/waits.ts";

/** Queues with due rows. */
interface DueQueues<Q> {
  queues: Q[];
  /** False if the limit may have left out rows or queues. */
  isComplete: boolean;
}

/** The two ways to search for queues with due rows. */
export interface DueReads<Q> {
  /** Reads at most `limit` due rows, those that were due first. */
  byTime(limit: number): Awaitable<DueQueues<Q>>;
  /** Reads the first due or planned row of each queue. @param limit maximum number of queues; null for all queues */
  byQueue(limit: number | null): Awaitable<DueQueues<Q>>;
}

export interface DueFinder {
  /** Returns all queues with due rows. */
  find<Q>(reads: DueReads<Q>): Promise<Q[]>;
}

/** Limit of the first search. Usually fewer rows are due. */
const FEW_ROWS = 50;
/** Limit of the second search, which searches the index once for each queue. */
const FEW_QUEUES = 10;
/** Limit of the third search, which takes about as long as a search for 50 queues. */
const MANY_ROWS = 1_000;
/**
 * The second search is slow if it takes more than this many times as long as the first search. A second search of up to
 * this many milliseconds is never slow.
 */
const SLOW_RATIO = 3;
/** After this many slow second searches in a row, the finder skips the second search for LEFT_OUT_MS. */
const SLOW_SEARCHES = 4;
const LEFT_OUT_MS = 60_000;

/**
 * Finds the queues with due rows. Runs up to four searches, until one has found them all. The first search is
 * enough while few rows are due. The second search is enough while few queues have planned rows, for example if one
 * endpoint hangs. Usually both are fast, even if many rows are planned or a queue is long. The third search reads more
 * rows than the first one. The fourth search reads all queues, so many due rows of one shop cannot hide other shops.
 *
 * The second search is slow if an old snapshot of PostgreSQL keeps the index entries of finished rows.
 * @param clock milliseconds of a clock that only goes forward
 */
export function createDueFinder(clock: () => number = () => performance.now()): DueFinder {
  let slowSearches = 0;
  let leftOutUntil = Number.NEGATIVE_INFINITY;

  async function findInFewQueues<Q>({ byQueue }: DueReads<Q>, firstMs: number): Promise<DueQueues<Q> | undefined> {
    const beganAt = clock();
    if (beganAt < leftOutUntil) return undefined;
    try {
      return await byQueue(FEW_QUEUES);
    } finally {
      const endedAt = clock();
      const isSlow = endedAt - beganAt > SLOW_RATIO * Math.max(firstMs, 1);
      slowSearches = isSlow ? slowSearches + 1 : 0;
      if (slowSearches === SLOW_SEARCHES) [slowSearches, leftOutUntil] = [0, endedAt + LEFT_OUT_MS];
    }
  }

  return {
    async find(reads) {
      const beganAt = clock();
      const first = await reads.byTime(FEW_ROWS);
      if (first.isComplete) return first.queues;
      const second = await findInFewQueues(reads, clock() - beganAt);
      if (second?.isComplete) return second.queues;
      const third = await reads.byTime(MANY_ROWS);
      return third.isComplete ? third.queues : (await reads.byQueue(null)).queues;
    },
  };
}
