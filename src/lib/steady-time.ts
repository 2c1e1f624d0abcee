/**
 * Epoch milliseconds that nobody can set: the time of day at the start, and what has passed since. For limits that
 * several processes share, as far as their clocks agreed when they started.
 * @param clock milliseconds of a clock that only goes forward
 */
export function createSteadyTime(now: () => number, clock: () => number): () => number {
  const offsetMs = now() - clock();
  // Whole milliseconds, because it is stored.
  return () => Math.round(offsetMs + clock());
}
