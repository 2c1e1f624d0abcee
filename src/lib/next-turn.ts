/** Resolves in the next turn of the event loop, so that what waits runs first. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
