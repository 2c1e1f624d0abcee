/** How long work counts as under way after its end, because more of it usually follows. */
const LINGER_MS = 2_000;
/** Work that takes longer waits for somebody else, such as an endpoint that hangs or a slow upload. */
const YOUNG_MS = 20;

/** Tells whether work is under way that somebody waits for, so that readers can make room for it. */
export interface LoadGauge {
  /** Whether work is under way, or was a moment ago. */
  readonly busy: boolean;
  /** Whether work began just now and has not ended. */
  readonly urgent: boolean;
  /** Counts work until its promise is settled. */
  during<T>(work: Promise<T>): Promise<T>;
}

/** @param clock milliseconds of a clock that only goes forward */
export function createLoadGauge(clock: () => number): LoadGauge {
  let underWay = 0;
  let startedAt = Number.NEGATIVE_INFINITY;
  let endedAt = Number.NEGATIVE_INFINITY;
  const end = () => {
    underWay -= 1;
    endedAt = clock();
  };
  return {
    get busy() {
      return underWay > 0 || clock() - endedAt < LINGER_MS;
    },
    get urgent() {
      return underWay > 0 && clock() - startedAt < YOUNG_MS;
    },
    during(work) {
      underWay += 1;
      startedAt = clock();
      return work.finally(end);
    },
  };
}
