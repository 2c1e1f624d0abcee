/**
 * A value, or a promise of it. An error is thrown at once, or rejects the promise: handle both. A synchronous answer to
 * a request is cheaper, because Bun then does not copy the request.
 */
export type Awaitable<T> = T | Promise<T>;

/** Calls `next` with a value: at once, or when the promise has resolved. */
export function andThen<T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Resolves in the next turn of the event loop: other work runs first. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Waits for a time in milliseconds, or until the signal is aborted. Never rejects. */
export type Sleep = (waitMs: number, signal?: AbortSignal) => Promise<void>;

/** A time limit that begins when it is created. */
export interface TimeLimit {
  /** Aborted when the time limit is over. */
  signal: AbortSignal;
  /**
   * Whether the time limit is over. After a pause of the whole process, this is true at once, but `signal` may be
   * aborted later.
   */
  isOver(): boolean;
}

export function createTimeLimit(timeoutMs: number): TimeLimit {
  const signal = AbortSignal.timeout(timeoutMs);
  const endsAt = performance.now() + timeoutMs;
  return { signal, isOver: () => signal.aborted || performance.now() > endsAt };
}

/** Waits for work until the signal is aborted. The abort does not end the work. @throws the reason of the signal */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort);
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
