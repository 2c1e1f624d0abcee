import type { ContractRead } from "../../domain/decide/commit.ts";
import type { StoredRead } from "../port/mirror.ts";

/** Maximum of orders noted for a contract: a renewal and its retries have few. A dropped order is only read again. */
const MAX_ORDERS = 8;

/**
 * Returns the state to store after a reading. The last commit wins, even if its reading began first, because the mirror
 * has its data. That commit may have replaced newer orders by older ones. So orders that were read after its reading
 * began are dropped.
 */
export function afterRead({ beganAt, orders }: ContractRead, before: StoredRead | undefined): StoredRead {
  const now = Object.fromEntries(orders.map((gid) => [gid, beganAt]));
  const earlier = Object.entries(before?.orders ?? {}).filter(([, at]) => at <= beganAt);
  const all = Object.entries({ ...Object.fromEntries(earlier), ...now }).toSorted(([, a], [, b]) => b - a);
  return { beganAt, orders: Object.fromEntries(all.slice(0, MAX_ORDERS)) };
}

export interface ContractReadRow {
  contract: string;
  beganAt: number;
  /** JSON of `StoredRead.orders`. */
  orders: string;
}

/** Returns stored readings by the contract's gid. */
export function storedReads(rows: readonly ContractReadRow[]): Map<string, StoredRead> {
  return new Map(
    rows.map(({ contract, beganAt, orders }) => [
      contract,
      { beganAt, orders: JSON.parse(orders) as StoredRead["orders"] },
    ]),
  );
}
