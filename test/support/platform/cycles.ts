import type { AttemptRow, ContractRow, Interval } from "./rows.ts";

const DAY = 86_400_000;

/** Billing cycles are not stored: each follows from the contract, without end. Cycle 1 begins with the contract; a cycle is billed at its end. */
export interface Cycle {
  readonly kind: "cycle";
  readonly contract: ContractRow;
  readonly index: number;
  readonly startAt: number;
  readonly endAt: number;
  readonly billed: boolean;
  readonly skipped: boolean;
  readonly edited: boolean;
  readonly attempts: readonly AttemptRow[];
}

/** Months that are too short end on their last day. */
export function addIntervals(from: number, interval: Interval, count: number): number {
  if (interval === "DAY") return from + count * DAY;
  if (interval === "WEEK") return from + count * 7 * DAY;
  const date = new Date(from);
  const months = date.getUTCMonth() + (interval === "MONTH" ? count : count * 12);
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), months + 1, 0)).getUTCDate();
  return Date.UTC(date.getUTCFullYear(), months, Math.min(date.getUTCDate(), lastDay)) + (from % DAY);
}

function cycleEnd({ createdAt, interval, intervalCount }: Pick<ContractRow, "createdAt" | "interval" | "intervalCount">, index: number): number {
  return addIntervals(createdAt, interval, index * intervalCount);
}

export function cycleOf(contract: ContractRow, index: number): Cycle {
  const attempts = contract.attempts.filter((attempt) => attempt.cycleIndex === index);
  return {
    kind: "cycle",
    contract,
    index,
    startAt: cycleEnd(contract, index - 1),
    endAt: cycleEnd(contract, index),
    billed: attempts.some(({ state }) => state === "succeeded"),
    skipped: contract.skips?.get(index) ?? false,
    edited: contract.skips?.has(index) ?? false,
    attempts,
  };
}

/** The first cycle that is billed at this time or later. */
export function firstBilledFrom(contract: ContractRow, time: number): number {
  const length = { DAY, WEEK: 7 * DAY, MONTH: 31 * DAY, YEAR: 366 * DAY }[contract.interval] * contract.intervalCount;
  let index = Math.max(1, Math.floor((time - contract.createdAt) / length));
  while (cycleEnd(contract, index) < time) index++;
  return index;
}

/** The cycle in which the time lies. */
export function cycleAt(contract: ContractRow, time: number): Cycle | null {
  if (time < contract.createdAt) return null;
  return cycleOf(contract, firstBilledFrom(contract, time + 1));
}

/** When the first cycle after this one is billed that is not skipped. */
export function nextBillingAfter(contract: Pick<ContractRow, "createdAt" | "interval" | "intervalCount" | "skips">, index: number): number {
  let next = index + 1;
  while (contract.skips?.get(next) === true) next++;
  return cycleEnd(contract, next);
}
