import type { RenewalRun } from "../../domain/platform/contract-read.ts";
import type { Order } from "../../domain/resources.ts";
import type { CycleState } from "../api/operations/cycles.ts";
import type { MirroredOrders } from "./cycles.ts";
import { orderOf } from "./orders.ts";
import type { CycleHistory } from "./records.ts";

/** If an app bills a due cycle, it does so within this time. Until then, the cycle counts as not due yet. */
const DAY_MS = 86_400_000;

/** Returns the platform's cycle of a renewal. Without runs, the cycle and the renewal have the same number. */
export function cycleOf(renewal: number, runs: readonly RenewalRun[]): number {
  const [first, cycle] = runs.findLast(([start]) => start <= renewal) ?? [0, 0];
  return cycle + renewal - first;
}

/** Returns the orders by the platform's cycles. @param orders by renewal @param runs see `ContractRead.renewals` */
export function byCycle(orders: ReadonlyMap<number, Order>, runs: readonly RenewalRun[]): MirroredOrders {
  return new Map([...orders].map(([number, order]) => [number === 0 ? 0 : cycleOf(number, runs), order]));
}

/**
 * Numbers the renewals of a contract by their cycles. An app may leave cycles out: an app that bills after the due time
 * begins with cycle 2. A cycle keeps its renewal number. So a cycle that is charged after a later cycle gets the next
 * free renewal number.
 * @param cycles the cycles that become orders, sorted by index
 * @param mirrored the orders so far, by cycle
 * @returns the numbers by cycle, and the runs to store
 */
export function numberRenewals(
  cycles: readonly CycleHistory[],
  next: Pick<CycleState, "cycleIndex" | "billingAttemptExpectedDate"> | undefined,
  mirrored: MirroredOrders,
  runs: readonly RenewalRun[],
  now: number,
): { numbers: ReadonlyMap<number, number>; runs: RenewalRun[] } {
  const renewals = [...mirrored.values()].filter(({ cycleNumber }) => cycleNumber > 0);
  const count = Math.max(0, ...renewals.map(({ cycleNumber }) => cycleNumber));
  const numbered = Array.from({ length: count }, (_, index) => cycleOf(index + 1, runs));
  const isNotDue = next !== undefined && Date.parse(next.billingAttemptExpectedDate) > now - DAY_MS;
  for (const { cycleIndex, attempts } of cycles) {
    const gids = attempts.flatMap(orderOf);
    // The intake may already have reported an order of this cycle and given it a number.
    const known = renewals.find(({ shopifyId }) => gids.some((gid) => gid === shopifyId));
    if (known !== undefined) numbered[known.cycleNumber - 1] = cycleIndex;
    if (numbered.includes(cycleIndex)) continue;
    // A cycle can be skipped before earlier cycles are billed. The numbers of the earlier cycles are kept free.
    const isAhead = attempts.length === 0 && isNotDue;
    const first = isAhead ? Math.max(Math.max(0, ...numbered) + 1, next.cycleIndex) : cycleIndex;
    for (let cycle = first; cycle < cycleIndex; cycle += 1) numbered.push(cycle);
    numbered.push(cycleIndex);
  }
  return { numbers: new Map(numbered.map((cycle, index) => [cycle, index + 1])), runs: runsOf(numbered) };
}

/** Returns the runs. A run begins at a renewal whose cycle does not directly follow the previous renewal's cycle. */
function runsOf(cycles: readonly number[]): RenewalRun[] {
  return cycles.flatMap((cycle, index): RenewalRun[] =>
    cycle === (cycles[index - 1] ?? 0) + 1 ? [] : [[index + 1, cycle]],
  );
}
