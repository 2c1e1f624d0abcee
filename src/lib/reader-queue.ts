/** How long the gauge stays busy after work has ended, because more work usually follows. */
const LINGER_MS = 2_000;
/**
 * Work that has run for longer than this is not urgent. Such work waits for something else, such as a slow upload or an
 * endpoint that hangs.
 */
const YOUNG_MS = 20;

/** Tells the reader queue whether other work is under way. Readers must not delay work that somebody waits for. */
export interface LoadGauge {
  /** Whether work is under way, or ended less than LINGER_MS ago. */
  readonly busy: boolean;
  /** Whether work has just begun and has not ended. */
  readonly urgent: boolean;
  /** Counts the work as under way until its promise settles. */
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

/**
 * Maximum number of turns of the event loop between two readers while other work is urgent. A commit waits for two
 * quiet turns. A reader in each turn would make these turns longer, and an event would reach its endpoint after twice
 * the time.
 */
const MAX_FREE_TURNS = 8;

/** Lets readers run one by one. */
export interface ReaderQueue {
  /**
   * @returns undefined if the reader may run now; otherwise a promise that resolves when it may run. The reader must
   *   then run at once, synchronously or in microtasks.
   */
  enter(): Promise<void> | undefined;
  /** Notes that a reader took long: the next reader runs in another turn, even if no other work is under way. */
  noteLong(): void;
}

/**
 * While other work is under way, lets one reader run in each turn of the event loop. Without other work, readers wait
 * only after a long reader.
 */
export function createReaderQueue(load: Pick<LoadGauge, "busy" | "urgent">): ReaderQueue {
  const waiting: (() => void)[] = [];
  /** Whether a reader has to wait for the next turn. */
  let taken = false;
  let freeTurns = 0;

  function nextTurn(): void {
    taken = waiting.length > 0;
    if (!taken) return;
    setImmediate(nextTurn);
    if (load.urgent && freeTurns < MAX_FREE_TURNS) {
      freeTurns += 1;
      return;
    }
    freeTurns = 0;
    waiting.shift()?.();
  }

  function take(): void {
    if (taken) return;
    taken = true;
    setImmediate(nextTurn);
  }

  return {
    enter() {
      if (taken) return new Promise((resolve) => waiting.push(resolve));
      if (load.busy) take();
      return undefined;
    },
    noteLong: take,
  };
}
