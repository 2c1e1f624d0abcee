/** Whatever the platform says of its points. Milliseconds. */
const LONGEST_WAIT = 60_000;

/** What the platform last said of a shop's points. */
export interface ThrottleStatus {
  maximumAvailable: number;
  currentlyAvailable: number;
  /** Points a second. */
  restoreRate: number;
}

/**
 * One shop's points at the platform, a leaky bucket as its answers describe it: who asks waits in turn until there should be enough, so that
 * the platform has no cause to refuse. Times in milliseconds on a clock that only goes forward.
 */
export class RateLimiter {
  private readonly clock: () => number;
  private readonly sleep: (ms: number) => Promise<void>;
  private status: ThrottleStatus | undefined;
  private statusAt = 0;
  /** Points of questions that are under way, which the platform may have taken already or not. */
  private reserved = 0;
  private turn: Promise<void> = Promise.resolve();

  constructor(clock: () => number, sleep: (ms: number) => Promise<void>) {
    this.clock = clock;
    this.sleep = sleep;
  }

  /** Waits for one's turn and for the points. @returns what gives the points back */
  async take(cost: number): Promise<(status: ThrottleStatus | undefined) => void> {
    const before = this.turn;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.turn = promise;
    await before;
    try {
      const wait = this.waitFor(cost);
      if (wait > 0) await this.sleep(wait);
    } finally {
      resolve();
    }
    this.reserved += cost;
    return (status) => {
      this.reserved -= cost;
      if (status === undefined) return;
      this.status = status;
      this.statusAt = this.clock();
    };
  }

  /** How long until there are so many points, milliseconds. */
  waitFor(cost: number): number {
    if (this.status === undefined) return 0;
    const { maximumAvailable, currentlyAvailable, restoreRate } = this.status;
    const restored = ((this.clock() - this.statusAt) / 1000) * restoreRate;
    const available = Math.min(maximumAvailable, currentlyAvailable + restored) - this.reserved;
    if (available >= cost || restoreRate <= 0) return 0;
    return Math.min(Math.ceil(((cost - available) / restoreRate) * 1000), LONGEST_WAIT);
  }
}
