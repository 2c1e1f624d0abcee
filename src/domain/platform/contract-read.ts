import type { Refusal } from "../records/refusal.ts";

/** One reading of a contract, with its orders that can still change. */
export interface ContractRead {
  /** The contract's gid. */
  contract: string;
  /** Start of the reading, epoch milliseconds. */
  beganAt: number;
  /** Time of the contract's newest change that the reading saw, epoch milliseconds. */
  updatedAt: number;
  /**
   * The keys are the gids of the orders that were also read. A value is the time of the order's last change; null if
   * the platform gave no time. A charged order is read again only if the platform changed it.
   */
  orders: ReadonlyMap<string, number | null>;
  /** null for a contract in the shop's currency; undefined keeps the stored currency. */
  currency?: ContractCurrency | null;
  /**
   * The runs that map the renewals to the platform's cycles. Empty if each renewal has the same number as its cycle.
   * undefined keeps the stored runs.
   */
  renewals?: readonly RenewalRun[];
  /**
   * The runs that were stored when the reading began. If another process has stored different runs since then, the
   * commit refuses this reading, because its renewal numbers are outdated. undefined stores the runs unchecked.
   */
  renewalsBefore?: readonly RenewalRun[];
}

/**
 * Refuses readings if another process has stored different runs of renewals since the readings began.
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

/** A run's first renewal, and the cycle of that renewal. Each further renewal of the run has the next cycle. */
export type RenewalRun = readonly [renewal: number, cycle: number];

/** The same amount in minor units of two currencies. Two whole numbers are exact, but their quotient is rounded. */
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

/** Returns the value whose rate comes from the newer order. If times are equal or currencies differ, returns `next`. */
export function newerCurrency(
  next: ContractCurrency | null,
  before: ContractCurrency | null | undefined,
): ContractCurrency | null {
  if (next === null || before?.pair !== next.pair) return next;
  return (before.ratedAt ?? 0) > (next.ratedAt ?? 0) ? before : next;
}
