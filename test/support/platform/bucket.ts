export interface ThrottleStatus {
  maximumAvailable: number;
  currentlyAvailable: number;
  restoreRate: number;
}

/** The query points of a shop. They come back in real time, so a test whose clock stands still can go on. */
export class Bucket {
  /** All points that were taken and not given back. */
  spent = 0;
  private available: number;
  private filledAt = performance.now();
  private readonly maximum: number;
  private readonly perSecond: number;

  constructor(maximum: number, perSecond: number) {
    this.maximum = maximum;
    this.perSecond = perSecond;
    this.available = maximum;
  }

  get status(): ThrottleStatus {
    const now = performance.now();
    this.available = Math.min(this.maximum, this.available + ((now - this.filledAt) / 1000) * this.perSecond);
    this.filledAt = now;
    return {
      maximumAvailable: this.maximum,
      currentlyAvailable: Math.floor(this.available),
      restoreRate: this.perSecond,
    };
  }

  /** @returns false, without taking points, if there are too few */
  take(points: number): boolean {
    if (points > this.status.currentlyAvailable) return false;
    this.available -= points;
    this.spent += points;
    return true;
  }

  giveBack(points: number): void {
    this.spent -= points;
    this.available = Math.min(this.maximum, this.available + points);
  }

  /** Leaves this many points, for tests of throttling. */
  drainTo(points: number): void {
    this.available = Math.min(this.status.maximumAvailable, points);
  }
}
