const cleanups: (() => unknown)[] = [];

/** Registers a function to run after the test, even if the test fails. The last function runs first. */
export function afterTest(cleanup: () => unknown): void {
  cleanups.push(cleanup);
}

/** Runs the registered functions now, for tests with many runs. */
export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}
