import {
  type ContractCurrency,
  type ContractRead,
  type ExchangeRate,
  newerCurrency,
} from "../../domain/platform/contract-read.ts";
import type { StoredRead } from "../port/mirror.ts";

/** Maximum of orders noted for a contract. A renewal has fewer. An order that is not noted is only read once more. */
const MAX_ORDERS = 8;

/**
 * Returns the state to store after a reading. Replaces the stored reading even if the new reading began first, because
 * the mirror has the new reading's data now. This data may have replaced newer orders. So stored readings of orders
 * that began later are dropped, and these orders are read again.
 */
export function afterRead({ beganAt, orders, currency }: ContractRead, before: StoredRead | undefined): StoredRead {
  const now = Object.fromEntries(orders.map((gid) => [gid, beganAt]));
  const earlier = Object.entries(before?.orders ?? {}).filter(([, at]) => at <= beganAt);
  const all = Object.entries({ ...Object.fromEntries(earlier), ...now }).toSorted(([, a], [, b]) => b - a);
  return {
    beganAt,
    orders: Object.fromEntries(all.slice(0, MAX_ORDERS)),
    currency: currency === undefined ? (before?.currency ?? null) : newerCurrency(currency, before?.currency),
  };
}

export interface ContractReadRow {
  contract: string;
  beganAt: number;
  /** JSON of `StoredRead.orders`. */
  orders: string;
  currencyPair: string | null;
  /** JSON of an exchange rate. */
  rate: string | null;
  ratedAt: number | null;
}

/** Returns stored readings by the contract's gid. */
export function storedReads(rows: readonly ContractReadRow[]): Map<string, StoredRead> {
  return new Map(
    rows.map(({ contract, beganAt, orders, ...row }) => [
      contract,
      { beganAt, orders: JSON.parse(orders) as StoredRead["orders"], currency: storedCurrency(row) },
    ]),
  );
}

type CurrencyColumns = Pick<ContractReadRow, "currencyPair" | "rate" | "ratedAt">;

function storedCurrency({ currencyPair: pair, rate, ratedAt }: CurrencyColumns): ContractCurrency | null {
  return pair === null ? null : { pair, rate: rate === null ? null : storedRate({ rate }), ratedAt };
}

/** Reads the JSON of an exchange rate. */
export function storedRate({ rate }: { rate: string }): ExchangeRate {
  return JSON.parse(rate) as ExchangeRate;
}

/** Returns a reading as its columns `began_at`, `orders`, `currency_pair`, `rate` and `rated_at`. */
export function readColumns({ beganAt, orders, currency }: StoredRead) {
  const { pair = null, rate = null, ratedAt = null } = currency ?? {};
  return [beganAt, JSON.stringify(orders), pair, rate === null ? null : JSON.stringify(rate), ratedAt] as const;
}
