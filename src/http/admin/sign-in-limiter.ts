/** contract of the sign-in: so many wrong tokens in so many milliseconds, then no more of that address. */
const WRONG_ONES = 5;
const WITHIN = 60_000;
/** Addresses that are remembered; beyond that, who was wrong longest ago is forgotten. */
const ADDRESSES = 10_000;

/** Counts wrong sign-in tokens by address. */
export class SignInLimiter {
  private readonly now: () => number;
  /** When each address was wrong, oldest first; addresses in the order of their last wrong token. */
  private readonly times = new Map<string, number[]>();

  constructor(now: () => number) {
    this.now = now;
  }

  /** @returns after how many seconds the address may try again; undefined if it may now */
  wait(address: string): number | undefined {
    const recent = this.recent(address);
    const [oldest] = recent;
    if (oldest === undefined || recent.length < WRONG_ONES) return undefined;
    return Math.ceil((oldest + WITHIN - this.now()) / 1000);
  }

  /** @returns what takes it back */
  note(address: string): () => void {
    const at = this.now();
    const recent = [...this.recent(address), at];
    this.times.delete(address);
    this.times.set(address, recent);
    for (const longestAgo of this.times.keys()) {
      if (this.times.size <= ADDRESSES && this.recent(longestAgo).length > 0) break;
      this.times.delete(longestAgo);
    }
    return () => {
      const times = this.times.get(address);
      const index = times?.lastIndexOf(at) ?? -1;
      if (index !== -1) times?.splice(index, 1);
    };
  }

  private recent(address: string): number[] {
    return (this.times.get(address) ?? []).filter((at) => at > this.now() - WITHIN);
  }
}
