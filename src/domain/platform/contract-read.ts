import type { Refusal } from "../records/refusal.ts";

/** A reading of a contract with all its orders that can still change. */
export interface ContractRead {
  /** The contract's gid. */
  contract: string;
  /** Start of the reading, epoch milliseconds. */
  beganAt: number;
  /** When the contract changed last, as the reading showed it. Epoch milliseconds. */
  updatedAt: number;
  /**
   * The orders that were read too, and when each changed last; null if the platform did not say when. A charged order
   * is read again only if the platform changed it.
   */
  orders: ReadonlyMap<string, number | null>;
  /** null for a contract in the shop's currency; undefined keeps the stored currency. */
  currency?: ContractCurrency | null;
  /**
   * The platform's cycles of the renewals, as runs. A run begins at each renewal whose cycle does not follow the cycle
   * of the previous renewal. Empty if each renewal has its cycle's number. undefined keeps the stored runs.
   */
  renewals?: readonly RenewalRun[];
  /**
   * The stored runs when the reading began. If another process has stored other runs since, the commit refuses the
   * reading, because its renewals have other numbers. undefined stores the runs unchecked.
   */
  renewalsBefore?: readonly RenewalRun[];
}

/**
 * Refuses readings if another process has stored other runs of renewals since the readings began.
 * @param stored the last readings, by the contract's gid
 */
export function refuseOutdated(
  reads: readonly ContractRead[],
  stored: ReadonlyMap<string, Pick<ContractRead, "renewals">>,
): Refusal | undefined {
  const isOutdated = reads.some(({ contract, renewals, renewalsBefore }) => {
    if (renewals === undefined || renewalsBefore === undefined) return false;
    return JSON.stringify(stored.get(contract)?.renewals ?? []) !== JSON.stringify(renewalsBefore);
  });
  const reason = "is from an outdated reading: another process has numbered renewals of the contract since";
  return isOutdated ? { field: "", reason } : undefined;
}

/** The first renewal of a run, and its cycle. Each next renewal of the run has the next cycle. */
export type RenewalRun = readonly [renewal: number, cycle: number];

/** The same amount in minor units of two currencies. Two whole numbers are exact, a quotient is not. */
export interface ExchangeRate {
  from: number;
  to: number;
}

/** The currency of a contract, if it is not the shop's. */
export interface ContractCurrency {
  /** The contract's currency and the shop's, like `JPY/USD`. */
  pair: string;
  /** null while no order of the shop has shown the rate. */
  rate: ExchangeRate | null;
  /** Time of the contract's own order with this rate, epoch milliseconds; null for the rate of another contract. */
  ratedAt: number | null;
}

/** Returns the value whose rate is of the newer order. Returns `next` for equal times, or for another currency. */
export function newerCurrency(
  next: ContractCurrency | null,
  before: ContractCurrency | null | undefined,
): ContractCurrency | null {
  if (next === null || before?.pair !== next.pair) return next;
  return (before.ratedAt ?? 0) > (next.ratedAt ?? 0) ? before : next;
}
