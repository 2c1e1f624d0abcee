import type { Submission } from "../../domain/decide/commit.ts";
import {
  type ContractCurrency,
  type ContractRead,
  type ExchangeRate,
  newerCurrency,
  type RenewalRun,
} from "../../domain/platform/contract-read.ts";
import type { StoredRead } from "../port/mirror.ts";

/** Returns the gids of a shop's contracts that have a reading in the submissions. */
export function contractsRead(submissions: readonly Submission[], shopId: number): string[] {
  const reads = submissions.flatMap((each) => (each.shop.id === shopId ? (each.reads ?? []) : []));
  return [...new Set(reads.map(({ contract }) => contract))];
}

/**
 * Maximum number of order readings stored for a contract. A renewal needs fewer. An order without a stored reading is
 * read again.
 */
const MAX_ORDERS = 8;

/**
 * Returns the state to store after a reading. The reading replaces a stored reading even if the stored reading began
 * later, because the mirror has the new data now. The new data may have replaced newer orders. So stored order readings
 * that began later are dropped, and their orders are read again.
 */
export function afterRead(
  { beganAt, updatedAt, orders, renewals, currency }: ContractRead,
  before: StoredRead | undefined,
): StoredRead {
  const earlier = Object.entries(before?.orders ?? {}).filter(([, order]) => order.beganAt <= beganAt);
  const now = [...orders].map(([gid, changedAt]) => [gid, { beganAt, updatedAt: changedAt }] as const);
  const all = [...new Map([...earlier, ...now])].toSorted(([, a], [, b]) => b.beganAt - a.beganAt);
  return {
    beganAt,
    updatedAt,
    orders: Object.fromEntries(all.slice(0, MAX_ORDERS)),
    renewals: renewals ?? before?.renewals ?? [],
    currency: currency === undefined ? (before?.currency ?? null) : newerCurrency(currency, before?.currency),
  };
}

export interface ContractReadRow {
  contract: string;
  beganAt: number;
  updatedAt: number | null;
  /** JSON object: `[beganAt, updatedAt]` by order gid. */
  orders: string;
  /** JSON of `StoredRead.renewals`. */
  renewals: string | null;
  currencyPair: string | null;
  /** JSON of an exchange rate. */
  rate: string | null;
  ratedAt: number | null;
}

/** Returns stored readings by the contract's gid. */
export function storedReads(rows: readonly ContractReadRow[]): Map<string, StoredRead> {
  return new Map(
    rows.map(({ contract, beganAt, updatedAt, orders, renewals, ...row }) => [
      contract,
      {
        beganAt,
        updatedAt,
        orders: storedOrders(orders),
        renewals: renewals === null ? [] : (JSON.parse(renewals) as RenewalRun[]),
        currency: storedCurrency(row),
      },
    ]),
  );
}

/** Parses the readings of orders. Earlier versions stored only `beganAt` for each order. */
function storedOrders(json: string): StoredRead["orders"] {
  const orders = JSON.parse(json) as Record<string, number | [beganAt: number, updatedAt: number | null]>;
  return Object.fromEntries(
    Object.entries(orders).map(([gid, order]) => {
      const [beganAt, updatedAt] = typeof order === "number" ? [order, null] : order;
      return [gid, { beganAt, updatedAt }];
    }),
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

/** Returns the column values of a reading, from `began_at` to `rated_at`, in the order of both engines' statements. */
export function readColumns({ beganAt, updatedAt, orders, renewals, currency }: StoredRead) {
  const { pair = null, rate = null, ratedAt = null } = currency ?? {};
  const times = Object.entries(orders).map(([gid, order]) => [gid, [order.beganAt, order.updatedAt]]);
  const json = JSON.stringify(Object.fromEntries(times));
  const runs = renewals.length === 0 ? null : JSON.stringify(renewals);
  return [beganAt, updatedAt, json, runs, pair, rate === null ? null : JSON.stringify(rate), ratedAt] as const;
}
