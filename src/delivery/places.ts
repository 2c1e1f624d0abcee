/**
 * How many attempts may run at once, and whose. Each shop has a few places and all shops share a number of them. Endpoints that
 * are not known to answer (not tried yet, or lately timed out) have one place each and share half of the whole, so that however
 * many of them hang, the others find places.
 */
export class Places {
  private readonly total: number;
  private readonly perShop: number;
  private readonly inFlight = new Map<number, number>();
  /** Shops whose endpoint's last attempt came to an answer, if only to a refusal. */
  private readonly answering = new Set<number>();
  private taken = 0;
  private takenByUnknown = 0;
  /** The shop served last: the next round begins behind it. */
  private lastServed = 0;

  constructor(total: number, perShop: number) {
    this.total = total;
    this.perShop = perShop;
  }

  get free(): number {
    return this.total - this.taken;
  }

  get inUse(): number {
    return this.taken;
  }

  /**
   * Shares the free places among shops with something due, one at a time in turn.
   * @param due shop ids, ascending
   */
  share(due: readonly number[]): Map<number, number> {
    const shares = new Map<number, number>();
    let free = this.free;
    let freeForUnknown = Math.ceil(this.total / 2) - this.takenByUnknown;
    const behind = due.findIndex((shopId) => shopId > this.lastServed);
    let round = behind <= 0 ? [...due] : [...due.slice(behind), ...due.slice(0, behind)];
    while (round.length > 0 && free > 0) {
      round = round.filter((shopId) => {
        const known = this.answering.has(shopId);
        const share = shares.get(shopId) ?? 0;
        const room = (known ? this.perShop : 1) - (this.inFlight.get(shopId) ?? 0) - share;
        if (free <= 0 || room <= 0 || (!known && freeForUnknown <= 0)) return false;
        shares.set(shopId, share + 1);
        free -= 1;
        if (!known) freeForUnknown -= 1;
        this.lastServed = shopId;
        return true;
      });
    }
    return shares;
  }

  /** @returns what gives the place back, told whether the endpoint answered */
  take(shopId: number): (answered: boolean) => void {
    const unknown = !this.answering.has(shopId);
    this.taken += 1;
    if (unknown) this.takenByUnknown += 1;
    this.inFlight.set(shopId, (this.inFlight.get(shopId) ?? 0) + 1);
    return (answered) => {
      this.taken -= 1;
      if (unknown) this.takenByUnknown -= 1;
      const left = (this.inFlight.get(shopId) ?? 1) - 1;
      if (left === 0) this.inFlight.delete(shopId);
      else this.inFlight.set(shopId, left);
      if (answered) this.answering.add(shopId);
      else this.answering.delete(shopId);
    };
  }
}
