export interface ThrottleStatus {
  maximumAvailable: number;
  currentlyAvailable: number;
  restoreRate: number;
}

/** A shop's query points. They come back in real time, so that a test's clock that stands still stops no one for ever. */
export class Bucket {
  /** Points that were taken and not given back, in all. */
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
    return { maximumAvailable: this.maximum, currentlyAvailable: Math.floor(this.available), restoreRate: this.perSecond };
  }

  /** Takes the points, unless there are too few. */
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

  /** For tests of throttling: leaves so many points. */
  drainTo(points: number): void {
    this.available = Math.min(this.status.maximumAvailable, points);
  }
}
