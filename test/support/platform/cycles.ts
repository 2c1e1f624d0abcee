import type { AttemptRow, ContractRow, Interval, LineRow } from "./rows.ts";

const DAY_MS = 86_400_000;

/**
 * A billing cycle. Cycles are not stored but computed from the contract. Cycle 1 begins with the contract, and each
 * cycle is billed at its end, unless an edit moved the date. Cycles go on endlessly, even after the contract has ended.
 */
export interface Cycle {
  readonly kind: "cycle";
  readonly contract: ContractRow;
  readonly index: number;
  readonly startAt: number;
  readonly endAt: number;
  readonly billed: boolean;
  readonly skipped: boolean;
  readonly edited: boolean;
  /** The end of the cycle, unless an edit moved the date. */
  readonly expectedAt: number;
  readonly editedLines: readonly LineRow[] | null;
  readonly attempts: readonly AttemptRow[];
}

/** A date that a month does not have becomes the last day of the month. */
export function addIntervals(from: number, interval: Interval, count: number): number {
  if (interval === "DAY") return from + count * DAY_MS;
  if (interval === "WEEK") return from + count * 7 * DAY_MS;
  const date = new Date(from);
  const months = date.getUTCMonth() + (interval === "MONTH" ? count : count * 12);
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), months + 1, 0)).getUTCDate();
  return Date.UTC(date.getUTCFullYear(), months, Math.min(date.getUTCDate(), lastDay)) + (from % DAY_MS);
}

function cycleEnd(
  { createdAt, interval, intervalCount }: Pick<ContractRow, "createdAt" | "interval" | "intervalCount">,
  index: number,
): number {
  return addIntervals(createdAt, interval, index * intervalCount);
}

export function cycleOf(contract: ContractRow, index: number): Cycle {
  const edit = contract.edits?.get(index);
  const attempts = contract.attempts.filter((attempt) => attempt.cycleIndex === index);
  return {
    kind: "cycle",
    contract,
    index,
    startAt: cycleEnd(contract, index - 1),
    endAt: cycleEnd(contract, index),
    billed: attempts.some(({ state }) => state === "succeeded"),
    skipped: contract.skips?.get(index) ?? false,
    edited: contract.skips?.has(index) === true || edit !== undefined,
    expectedAt: edit?.expectedAt ?? cycleEnd(contract, index),
    editedLines: edit?.lines ?? null,
    attempts,
  };
}

/** The first cycle that is billed at the given time or later. */
export function firstBilledFrom(contract: ContractRow, time: number): number {
  const longestDays = { DAY: 1, WEEK: 7, MONTH: 31, YEAR: 366 }[contract.interval];
  const lengthMs = longestDays * contract.intervalCount * DAY_MS;
  let index = Math.max(1, Math.floor((time - contract.createdAt) / lengthMs));
  while (cycleEnd(contract, index) < time) index++;
  return index;
}

/** The cycle that a time belongs to. */
export function cycleAt(contract: ContractRow, time: number): Cycle | null {
  if (time < contract.createdAt) return null;
  return cycleOf(contract, firstBilledFrom(contract, time + 1));
}

/** The billing date of the first cycle after `index` that is not skipped. */
export function nextBillingAfter(
  contract: Pick<ContractRow, "createdAt" | "interval" | "intervalCount" | "skips" | "edits">,
  index: number,
): number {
  let next = index + 1;
  while (contract.skips?.get(next) === true) next++;
  return contract.edits?.get(next)?.expectedAt ?? cycleEnd(contract, next);
}
