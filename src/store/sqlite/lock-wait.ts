import type { Database } from "bun:sqlite";
import { codeOf } from "../../domain/error.ts";

/** How often the lock is tried while another process holds it. An attempt takes some microseconds. */
const PROBE_INTERVAL_MS = 4;

/** Repeats operations that found the database locked by another process. Reads do not wait for them. */
export interface LockWait {
  /**
   * @param operation failed with `busy`, and can be repeated: a failed transaction leaves nothing
   * @throws the operation's error; `busy` if the lock is held for too long, and then at once until it is free
   */
  repeat<T>(operation: () => Promise<T>, busy: unknown): Promise<T>;
}

/**
 * SQLite would wait by blocking the program, for each operation in turn. So SQLite's own wait is 0. One timer checks
 * the lock for all waiting operations, and reads go on.
 * @param timeoutMs how long one operation waits at most; and how long all wait for the same lock, from when it was
 *   noticed
 */
export function createLockWait(db: Database, timeoutMs: number): LockWait {
  /** Resolves to whether the lock became free in time. undefined until an operation finds the database locked. */
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

/** Whether another process holds a lock that SQLite could not get. */
export function isBusy(thrown: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED)/.test(codeOf(thrown));
}

/** Other failures count as unlocked: the repeated operation will report them. */
function isLocked(db: Database): boolean {
  try {
    db.run("BEGIN IMMEDIATE");
    db.run("ROLLBACK");
    return false;
  } catch (thrown) {
    return isBusy(thrown);
  }
}
