import { StoreError } from "../port/store-error.ts";

/** A time limit for an answer. */
export interface Deadline {
  /** Rejects with StoreError `lost` when the time is over. */
  passed: Promise<never>;
  isPassed(): boolean;
  /** Restarts the time limit. Call this after an answer. */
  extend(): void;
  clear(): void;
}

/** If the whole process was paused, answers may have arrived. They are still read for this long. */
const GRACE_MS = 20;

export function createDeadline(deadlineMs: number, onPassed: () => void): Deadline {
  const { promise, reject } = Promise.withResolvers<never>();
  // Callers that stopped waiting must not see an unhandled rejection.
  promise.catch(() => undefined);
  let isPassed = false;
  const pass = () => {
    isPassed = true;
    reject(new StoreError("lost", new Error(`the database did not answer within ${deadlineMs / 1_000} s`)));
    onPassed();
  };
  let grace: Timer | undefined;
  const timer = setTimeout(() => {
    grace = setTimeout(pass, GRACE_MS);
  }, deadlineMs);
  return {
    passed: promise,
    isPassed: () => isPassed,
    extend() {
      if (isPassed) return;
      clearTimeout(grace);
      timer.refresh();
    },
    clear() {
      clearTimeout(timer);
      clearTimeout(grace);
    },
  };
}
