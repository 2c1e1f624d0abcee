const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** Maximum time of a timer, in milliseconds. A timer with a longer time fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * Returns the milliseconds to wait before the next attempt: exponential backoff with full jitter (0.5, 1, 2 … 30 s).
 * The jitter keeps many clients from returning at the same moment. The server's Retry-After is added without jitter.
 * @param failures how many attempts failed so far, from 1
 * @param retryAfterMs the wait that the server asked for, or 0
 * @param random from 0 to 1
 */
export function retryWait(failures: number, retryAfterMs: number, random: number): number {
  const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - 1));
  return retryAfterMs + Math.round(longest * random);
}

/**
 * Reads Retry-After (RFC 9110, 10.2.3): seconds or a date.
 * @param now epoch milliseconds
 * @returns milliseconds; undefined for a missing or malformed header
 */
export function parseRetryAfter(text: string | null, now: number): number | undefined {
  if (text === null) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const at = text.endsWith(" GMT") ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

/**
 * Makes a signal that aborts after a time, or when the given signal aborts. Call `end` afterwards to stop the timer.
 */
export function timeLimit(limitMs: number, signal: AbortSignal | undefined): { signal: AbortSignal; end: () => void } {
  const controller = new AbortController();
  const abort = () => controller.abort();
  const timer = setTimeout(abort, limitMs);
  signal?.addEventListener("abort", abort);
  return {
    signal: controller.signal,
    end() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    },
  };
}

/** Checks a time option. @throws TypeError unless the time is above zero and at most LONGEST_TIMER_MS */
export function requireTime(name: string, ms: number): void {
  if (ms > 0 && ms <= LONGEST_TIMER_MS) return;
  throw new TypeError(`${name} must be a number above zero and up to ${LONGEST_TIMER_MS}, in milliseconds`);
}

/** Sleeps, 24 days at most. @throws the reason of the signal */
export function sleepUnlessAborted(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener("abort", abort);
        resolve();
      },
      Math.min(ms, LONGEST_TIMER_MS),
    );
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted === true) abort();
  });
}
