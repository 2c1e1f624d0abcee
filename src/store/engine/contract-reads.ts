import type { ContractRead } from "../../domain/decide/commit.ts";
import type { StoredRead } from "../port/mirror.ts";

/** A renewal and its retries have few orders. An order that is forgotten is only read once more. */
const MAX_ORDERS = 8;

/**
 * What is stored after a reading. A reading that is committed last counts, even if it began first: the mirror has what
 * it saw. Then orders that were read after it began are forgotten, because it may have brought older ones.
 */
export function afterRead({ beganAt, orders }: ContractRead, before: StoredRead | undefined): StoredRead {
  const now = Object.fromEntries(orders.map((gid) => [gid, beganAt]));
  const earlier = Object.entries(before?.orders ?? {}).filter(([, at]) => at <= beganAt);
  const all = Object.entries({ ...Object.fromEntries(earlier), ...now }).toSorted(([, a], [, b]) => b - a);
  return { beganAt, orders: Object.fromEntries(all.slice(0, MAX_ORDERS)) };
}
