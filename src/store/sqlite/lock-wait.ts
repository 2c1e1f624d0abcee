import type { Database } from "bun:sqlite";
import { codeOf } from "../../domain/error.ts";

/** Time between two attempts to get a lock that another process holds. An attempt takes some microseconds. */
const PROBE_INTERVAL_MS = 4;

/** Repeats operations that found the database locked. Reads continue meanwhile. */
export interface LockWait {
  /**
   * Repeats an operation until the lock is free.
   * @param operation an operation that failed with `busy`. It can be repeated, because a failed transaction changes
   *   nothing.
   * @param busy the error with which the operation failed
   * @throws any other error of a repetition; the last busy error if the lock is held for too long. After that, calls
   *   throw their busy errors at once until the lock is free.
   */
  repeat<T>(operation: () => Promise<T>, busy: unknown): Promise<T>;
}

/**
 * Makes the wait for locks. SQLite's own wait would block the program for each operation in turn, so that wait is
 * switched off. Instead one timer checks the lock for all waiting operations, and reads continue.
 * @param timeoutMs maximum time that operations wait for a lock, counted from the first operation that finds the lock
 */
export function createLockWait(db: Database, timeoutMs: number): LockWait {
  /** Resolves to whether the lock became free in time. Undefined while no lock is known. */
  let lock: Promise<boolean> | undefined;

  function watchLock(): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const since = performance.now();
    const timer = setInterval(() => {
      if (isLocked(db)) {
        if (performance.now() - since > timeoutMs) resolve(false);
        return;
      }
      clearInterval(timer);
      lock = undefined;
      resolve(true);
    }, PROBE_INTERVAL_MS);
    return promise;
  }

  return {
    async repeat(operation, busy) {
      const endsAt = performance.now() + timeoutMs;
      for (let failure = busy; ; ) {
        lock ??= watchLock();
        if (!(await isTrueWithin(lock, endsAt - performance.now()))) throw failure;
        try {
          return await operation();
        } catch (thrown) {
          if (!isBusy(thrown)) throw thrown;
          failure = thrown;
        }
      }
    },
  };
}

async function isTrueWithin(value: Promise<boolean>, ms: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), Math.max(0, ms));
  return Promise.race([value, promise]).finally(() => clearTimeout(timer));
}

/** Whether an operation failed because another process holds a lock. */
export function isBusy(thrown: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED)/.test(codeOf(thrown));
}

/** Whether the database is locked. Other failures count as unlocked, because the repeated operation reports them. */
function isLocked(db: Database): boolean {
  try {
    db.run("BEGIN IMMEDIATE");
    db.run("ROLLBACK");
    return false;
  } catch (thrown) {
    return isBusy(thrown);
  }
}
