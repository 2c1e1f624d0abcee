/** After this many wrong tokens within this time, an address has to wait. */
const MAX_WRONG = 5;
const WITHIN_MS = 60_000;
/** How many addresses are remembered; beyond that, the one whose last wrong token is oldest is forgotten. */
const MAX_ADDRESSES = 10_000;

export interface SignInLimiter {
  /** @returns the seconds until the address may try again; undefined if it may try now */
  waitSeconds(address: string): number | undefined;
  /** Counts a wrong token. @returns a function that takes the count back */
  count(address: string): () => void;
}

/**
 * Counts wrong sign-in tokens by address.
 * @param clock milliseconds of a clock that only goes forward
 */
export function createSignInLimiter(clock: () => number): SignInLimiter {
  /** The times of each address's wrong tokens, oldest first. The address with the latest wrong token is last. */
  const times = new Map<string, number[]>();
  const recent = (address: string) => (times.get(address) ?? []).filter((at) => at > clock() - WITHIN_MS);

  return {
    waitSeconds(address) {
      const [oldest, ...others] = recent(address);
      if (oldest === undefined || others.length + 1 < MAX_WRONG) return undefined;
      return Math.ceil((oldest + WITHIN_MS - clock()) / 1000);
    },

    count(address) {
      const at = clock();
      const counted = [...recent(address), at];
      times.delete(address);
      times.set(address, counted);
      for (const oldest of times.keys()) {
        if (times.size <= MAX_ADDRESSES && recent(oldest).length > 0) break;
        times.delete(oldest);
      }
      return () => {
        const stored = times.get(address);
        const index = stored?.lastIndexOf(at) ?? -1;
        if (index !== -1) stored?.splice(index, 1);
      };
    },
  };
}
