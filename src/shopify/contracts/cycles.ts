import { isCharged } from "../../domain/decide/order.ts";
import type { Order } from "../../domain/resources.ts";
import type { RetryPlan } from "../../domain/retry-plan.ts";
import type { ContractNode } from "../api/operations/contracts.ts";
import type { CycleNode, CycleState } from "../api/operations/cycles.ts";

const DAY_MS = 86_400_000;
/** A cycle counts as settled this many days after its last possible retry. */
const SETTLED_AFTER_DAYS = 30;
/** Minimum and maximum number of days of each interval. */
const INTERVAL_DAYS: Record<string, [fewest: number, most: number]> = {
  DAY: [1, 1],
  WEEK: [7, 7],
  MONTH: [28, 31],
  YEAR: [365, 366],
};

/** The mirrored orders of a contract, by the platform's cycles. The checkout has number 0. */
export type MirroredOrders = ReadonlyMap<number, Order>;

/** Returns a time. A cycle that was due before this time counts as settled: we expect no later charge or skip. */
export function settledTime(retryPlan: RetryPlan, now: number): number {
  const days = retryPlan.reduce((sum, each) => sum + each, SETTLED_AFTER_DAYS);
  return now - days * DAY_MS;
}

/** Returns the number of the first cycle that can still change. @param settledBefore see `settledTime` */
export function firstOpenCycle(mirrored: MirroredOrders, settledBefore: number): number {
  // An app may leave a cycle out and bill the next cycle. Once a later order is settled, the left-out cycle counts as
  // settled too.
  const old = [...mirrored].filter(([, { billedAt }]) => Date.parse(billedAt) < settledBefore);
  const lastOld = Math.max(0, ...old.map(([cycle]) => cycle));
  let first = 1;
  while ((first < lastOld && !mirrored.has(first)) || isSettled(mirrored.get(first), settledBefore)) first += 1;
  return first;
}

function isSettled(order: Order | undefined, settledBefore: number): boolean {
  if (order === undefined) return false;
  // A charge whose order is unknown is settled only when it is old: the platform may show the order later, for example
  // after an approval.
  const isKnown = isCharged(order.status) && order.shopifyId !== null;
  return isKnown || Date.parse(order.billedAt) < settledBefore;
}

/** Returns the shortest and the longest length of an interval, in milliseconds. */
export function intervalMs({
  interval,
  intervalCount,
}: Pick<ContractNode["billingPolicy"], "interval" | "intervalCount">): { min: number; max: number } {
  const [fewest, most] = INTERVAL_DAYS[interval] ?? [28, 31];
  return { min: intervalCount * fewest * DAY_MS, max: intervalCount * most * DAY_MS };
}

/** Finds the cycle to bill next: the first cycle after the last billed cycle that is neither skipped nor settled. */
export function nextCycle<T extends CycleState>(
  cycles: readonly T[],
  mirrored: MirroredOrders,
  settledBefore: number,
): T | undefined {
  const billed = cycles.filter(({ status }) => status === "BILLED").map(({ cycleIndex }) => cycleIndex);
  const charged = [...mirrored].filter(([, { status }]) => isCharged(status)).map(([cycleNumber]) => cycleNumber);
  const last = Math.max(0, ...billed, ...charged);
  return cycles.find(
    ({ cycleIndex, status, skipped, billingAttemptExpectedDate }) =>
      cycleIndex > last && status === "UNBILLED" && !skipped && Date.parse(billingAttemptExpectedDate) >= settledBefore,
  );
}

/**
 * Returns the date of the next billing. If the app has written a date after the start of the next cycle, returns that
 * date. If there is no next cycle, returns the written date, but only for a contract without an end.
 */
export function nextBillingDate(
  { nextBillingDate: written, billingPolicy }: Pick<ContractNode, "nextBillingDate" | "billingPolicy">,
  next: CycleState | undefined,
): string | null {
  if (next === undefined) return billingPolicy.maxCycles === null ? written : null;
  const isAhead = written !== null && Date.parse(written) > Date.parse(next.cycleStartAt);
  return isAhead ? written : next.billingAttemptExpectedDate;
}

/**
 * Whether a contract can be billed again. The status decides, because the platform lists cycles even after the end.
 */
export function hasNextBilling({ status }: Pick<ContractNode, "status">): boolean {
  return status !== "CANCELLED" && status !== "EXPIRED";
}

/**
 * Returns the number of a contract's last cycle; infinity for a contract without an end.
 * @param mirrored the orders so far, by cycle. If an app has set an end before the last of these cycles, that cycle is
 *   returned
 */
export function lastCycle(
  { billingPolicy: { maxCycles } }: Pick<ContractNode, "billingPolicy">,
  mirrored?: MirroredOrders,
): number {
  return Math.max(maxCycles ?? Number.POSITIVE_INFINITY, ...(mirrored?.keys() ?? []));
}

/** Whether a cycle belongs to the contract. A cycle after the contract's end counts only if it was tried. */
export function isOfContract(node: Pick<ContractNode, "billingPolicy">, cycle: CycleNode): boolean {
  return cycle.cycleIndex <= lastCycle(node) || cycle.billingAttempts.nodes.length > 0;
}

/** Whether a cycle was not charged, not skipped and not attempted. */
export function isUntouched({ status, skipped, billingAttempts }: CycleNode): boolean {
  return status === "UNBILLED" && !skipped && billingAttempts.nodes.length === 0;
}
