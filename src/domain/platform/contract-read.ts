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
   * The orders that were read too, and when each changed last; null if the platform did not say it. A charged order is
   * read again only if the platform changed it.
   */
  orders: ReadonlyMap<string, number | null>;
  /** null for a contract in the shop's currency; undefined keeps the stored currency. */
  currency?: ContractCurrency | null;
  /**
   * The platform's cycles of the renewals: one entry for each renewal whose cycle does not follow the cycle of the
   * renewal before. Empty if each renewal has its cycle's number. undefined keeps what is stored.
   */
  renewals?: readonly RenewalRun[];
  /**
   * What was stored as `renewals` when the reading began. If another process has stored other runs since, the commit
   * refuses the reading: it gives other numbers to the renewals. undefined stores the runs unchecked.
   */
  renewalsBefore?: readonly RenewalRun[];
}

/**
 * Refuses readings if another process has stored other runs of renewals since they began.
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

/** A renewal and its cycle. The cycles of the next renewals follow, up to the next run. */
export type RenewalRun = readonly [renewal: number, cycle: number];

/** What the same money is worth in minor units of two currencies. Two whole numbers are exact, a quotient is not. */
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

/** Returns the value with the newer order's rate; `next` if the times are equal or the currencies differ. */
export function newerCurrency(
  next: ContractCurrency | null,
  before: ContractCurrency | null | undefined,
): ContractCurrency | null {
  if (next === null || before?.pair !== next.pair) return next;
  return (before.ratedAt ?? 0) > (next.ratedAt ?? 0) ? before : next;
}
