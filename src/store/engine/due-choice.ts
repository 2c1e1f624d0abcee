/** Maximum number of due rows that a search by time reads. If it reads as many, more rows may be due. */
export const MAX_DUE_READ = 1_000;
/** If a search by time reads this many rows, a search by queue may be cheaper. */
const MANY_ROWS = 50;
/** A search by queue takes as long for one queue as a search by time for this many rows. */
const ROWS_PER_QUEUE = 10;
/** After this time a choice is made anew, because the number of due rows may have changed. */
const CHOSEN_FOR_MS = 60_000;

/**
 * Chooses how to search for the queues with due work. A search by time reads the due rows of all queues, so it is
 * cheap while little is due. A search by queue reads the first planned row of each queue, so it is cheap while few
 * queues have planned rows, for example while one endpoint hangs.
 */
export interface DueChoice {
  /** Whether to search only by queue. @param now epoch milliseconds */
  isByQueue(now: number): boolean;
  /** Whether a search by queue must follow a search by time that read so many rows. */
  needsQueues(rows: number): boolean;
  /** Chooses by the number of rows that a search by time read, and the number of queues with planned rows. */
  choose(rows: number, queues: number): void;
}

export function createDueChoice(): DueChoice {
  let begunAt = Number.NEGATIVE_INFINITY;
  let isByQueue = false;
  /** The number of rows from which the costs are compared. It doubles each time, so comparing costs little. */
  let comparedFrom = MANY_ROWS;
  return {
    isByQueue(now) {
      // The clock may have been set back.
      if (now < begunAt || now - begunAt >= CHOSEN_FOR_MS) [begunAt, isByQueue, comparedFrom] = [now, false, MANY_ROWS];
      return isByQueue;
    },
    needsQueues: (rows) => rows >= Math.min(comparedFrom, MAX_DUE_READ),
    choose(rows, queues) {
      isByQueue = queues * ROWS_PER_QUEUE <= rows;
      comparedFrom = 2 * rows;
    },
  };
}
