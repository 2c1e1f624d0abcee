import { StoreError } from "../store-error.ts";

/** How long one may wait for an answer. */
export interface Deadline {
  /** Rejects with StoreError `lost` when the time is over. */
  passed: Promise<never>;
  isPassed(): boolean;
  /** An answer came: the time begins again. */
  extend(): void;
  clear(): void;
}

export function createDeadline(deadlineMs: number, onPassed: () => void): Deadline {
  const { promise, reject } = Promise.withResolvers<never>();
  // Who does not wait for it has no use for the error.
  promise.catch(() => undefined);
  let isPassed = false;
  const timer = setTimeout(() => {
    isPassed = true;
    reject(new StoreError("lost", new Error(`the database did not answer within ${deadlineMs / 1_000} s`)));
    onPassed();
  }, deadlineMs);
  return {
    passed: promise,
    isPassed: () => isPassed,
    extend() {
      if (!isPassed) timer.refresh();
    },
    clear: () => clearTimeout(timer),
  };
}
