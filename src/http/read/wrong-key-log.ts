import type { Log } from "../../lib/log.ts";

/** Minimum number of wrong keys from one address for a warning. Fewer wrong keys are usual if a key was replaced. */
const REPEATED = 3;
/** Minimum time between two warnings about the same address. */
const INTERVAL_MS = 60_000;
/** Maximum number of addresses to count. If there are more, the address that was quiet for longest is forgotten. */
const MAX_ADDRESSES = 1_000;

interface WrongKeys {
  /** Number of wrong keys since the last warning. */
  count: number;
  /** Time of the last warning, in milliseconds of the clock. */
  warnedAt: number;
  lastAt: number;
}

export interface WrongKeyLog {
  /** Counts a wrong key. @param address the client's address or its network */
  count(address: string): void;
  /** Writes the warnings that are due, and forgets quiet addresses. */
  report(): void;
}

/**
 * Warns about repeated wrong keys. An address with REPEATED wrong keys gets a warning at once, and later at most one
 * warning a minute. The keys themselves are never logged.
 * @param clock milliseconds of a clock that only goes forward
 */
export function createWrongKeyLog(clock: () => number, log: Log): WrongKeyLog {
  /** Sorted by the time of the latest wrong key. The most recent address is last. */
  const byAddress = new Map<string, WrongKeys>();

  function warnIfDue(address: string, wrong: WrongKeys): void {
    if (wrong.count < REPEATED || clock() - wrong.warnedAt < INTERVAL_MS) return;
    log.warn("an address sent wrong API keys again and again", { address, wrongKeys: wrong.count });
    wrong.count = 0;
    wrong.warnedAt = clock();
  }

  return {
    count(address) {
      const wrong = byAddress.get(address) ?? { count: 0, warnedAt: Number.NEGATIVE_INFINITY, lastAt: 0 };
      wrong.count += 1;
      wrong.lastAt = clock();
      byAddress.delete(address);
      byAddress.set(address, wrong);
      const [quietest] = byAddress.keys();
      if (byAddress.size > MAX_ADDRESSES && quietest !== undefined) byAddress.delete(quietest);
      warnIfDue(address, wrong);
    },
    report() {
      for (const [address, wrong] of byAddress) {
        warnIfDue(address, wrong);
        if (clock() - wrong.lastAt >= INTERVAL_MS) byAddress.delete(address);
      }
    },
  };
}
