/**
 * A value that is there already, or comes later. SQLite has it at once. A request that is answered in the turn of the
 * event loop in which it came is cheaper: Bun first copies a request that is answered later.
 *
 * An error is thrown at once, or rejects the promise: handle both.
 */
export type Awaitable<T> = T | Promise<T>;

/** Goes on with a value: at once if it is there. */
export function andThen<T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}
