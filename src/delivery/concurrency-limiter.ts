/** Answers sooner than this, in milliseconds, hold nobody up. */
const QUICK = 1_000;
/** So many attempts in a row that were not quick make an endpoint a slow one: a single one happens to everybody. */
const SLOW_AFTER = 2;

type Pace = "quick" | "untried" | "slow";
const PACES: readonly Pace[] = ["quick", "untried", "slow"];

/**
 * How many attempts may run at once, and whose. Each shop has a few places, and all shops share a number of them, in turn. What an endpoint
 * lately did decides how much it may hold: slow ones (that hang, or take their time) have one place each and half of the whole, untried ones one each and
 * a quarter, so that however many of them hang, the quick ones find places at once.
 */
export class ConcurrencyLimiter {
  private readonly total: number;
  private readonly perShop: number;
  private readonly inFlight = new Map<number, number>();
  /** Attempts in a row that were not quick, by shop; a shop that is not in it is untried. */
  private readonly slowInARow = new Map<number, number>();
  private readonly taken: Record<Pace, number> = { quick: 0, untried: 0, slow: 0 };
  /** The shop served last of each pace: the next round begins behind it. */
  private readonly lastServed: Record<Pace, number> = { quick: 0, untried: 0, slow: 0 };

  constructor(total: number, perShop: number) {
    this.total = total;
    this.perShop = perShop;
  }

  get free(): number {
    return this.total - this.taken.quick - this.taken.untried - this.taken.slow;
  }

  /**
   * Shares the free places among shops with something due.
   * @param due shop ids, ascending
   */
  share(due: readonly number[]): Map<number, number> {
    const limits = { quick: this.total, untried: Math.ceil(this.total / 4), slow: Math.ceil(this.total / 2) };
    const shares = new Map<number, number>();
    let free = this.free;
    for (const pace of PACES) {
      const budget = Math.min(free, limits[pace] - this.taken[pace]);
      const shops = due.filter((shopId) => this.paceOf(shopId) === pace);
      free -= this.shareInTurn(pace, shops, budget, shares);
    }
    return shares;
  }

  /** One place at a time, beginning behind the shop served last. @returns how many were given */
  private shareInTurn(pace: Pace, shops: readonly number[], budget: number, shares: Map<number, number>): number {
    const each = pace === "quick" ? this.perShop : 1;
    const behind = shops.findIndex((shopId) => shopId > this.lastServed[pace]);
    let round = behind <= 0 ? [...shops] : [...shops.slice(behind), ...shops.slice(0, behind)];
    let given = 0;
    while (round.length > 0 && given < budget) {
      round = round.filter((shopId) => {
        const share = shares.get(shopId) ?? 0;
        if (given >= budget || (this.inFlight.get(shopId) ?? 0) + share >= each) return false;
        shares.set(shopId, share + 1);
        this.lastServed[pace] = shopId;
        given += 1;
        return true;
      });
    }
    return given;
  }

  /** @returns what gives the place back, told how long the attempt took (milliseconds) and whether it timed out */
  take(shopId: number): (duration: number, timedOut: boolean) => void {
    const pace = this.paceOf(shopId);
    this.taken[pace] += 1;
    this.inFlight.set(shopId, (this.inFlight.get(shopId) ?? 0) + 1);
    return (duration, timedOut) => {
      this.taken[pace] -= 1;
      const left = (this.inFlight.get(shopId) ?? 1) - 1;
      if (left === 0) this.inFlight.delete(shopId);
      else this.inFlight.set(shopId, left);
      const wasQuick = !timedOut && duration < QUICK;
      this.slowInARow.set(shopId, wasQuick ? 0 : (this.slowInARow.get(shopId) ?? 0) + 1);
    };
  }

  private paceOf(shopId: number): Pace {
    const slow = this.slowInARow.get(shopId);
    if (slow === undefined) return "untried";
    return slow >= SLOW_AFTER ? "slow" : "quick";
  }
}
