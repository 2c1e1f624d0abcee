import { StoreError } from "../port/store-error.ts";

/** How long one may wait for an answer. */
export interface Deadline {
  /** Rejects with StoreError `lost` when the time is over. */
  passed: Promise<never>;
  isPassed(): boolean;
  /** An answer came: the time begins again. */
  extend(): void;
  clear(): void;
}

/** Answers that are here already are read in this time, where the whole process stood still. */
const GRACE_MS = 20;

export function createDeadline(deadlineMs: number, onPassed: () => void): Deadline {
  const { promise, reject } = Promise.withResolvers<never>();
  // Who does not wait for it has no use for the error.
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
