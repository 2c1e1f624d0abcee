import { isoUtc } from "../lib/time.ts";
import { invalid } from "./error.ts";

/** Days from each declined attempt to the next attempt. The attempt after the last wait is the last attempt. */
export type RetryPlan = readonly number[];

export const DEFAULT_RETRY_DAYS: RetryPlan = [1, 3, 5];

const DAY = 86_400_000;
const MAX_RETRIES = 20;
const MAX_DAYS = 365;

/** Reads a plan like `1,3,5`; `none` means no retries. @throws SdsError `invalid` */
export function parseRetryDays(text: string): RetryPlan {
  if (text === "none") return [];
  const days = text.split(",").map((part) => (/^\d{1,3}$/.test(part.trim()) ? Number(part) : Number.NaN));
  if (days.length <= MAX_RETRIES && days.every((each) => each >= 1 && each <= MAX_DAYS)) return days;
  throw invalid(
    `"${text}" is not a retry plan: write the days between attempts, like 1,3,5 ` +
      `(up to ${MAX_RETRIES}, each 1 to ${MAX_DAYS}), or none`,
  );
}

/**
 * Returns the next retry after a declined attempt. Only declined payments advance the plan. If stock was missing, the
 * previous wait is repeated. Before the first declined payment, the plan's first wait is used.
 * @param declinedPayments how many payments of the order were declined so far; 0 if only stock was missing
 * @param at when the attempt was declined, epoch milliseconds
 */
export function afterDecline(
  plan: RetryPlan,
  declinedPayments: number,
  at: number,
): { nextRetryAt: string | null; retriesExhausted: boolean } {
  const days = plan[Math.max(declinedPayments, 1) - 1];
  return days === undefined
    ? { nextRetryAt: null, retriesExhausted: true }
    : { nextRetryAt: isoUtc(at + days * DAY), retriesExhausted: false };
}
