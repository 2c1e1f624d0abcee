/** Resolves in the next turn of the event loop: other work runs before. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
