/**
 * A value that is there already, or comes later. SQLite has it at once. A request that is answered in the turn of the
 * event loop in which it came is cheaper: of one that waits, Bun first copies what it says.
 */
export type Awaitable<T> = T | Promise<T>;

/** Goes on with a value: at once if it is there. */
export function andThen<T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}
