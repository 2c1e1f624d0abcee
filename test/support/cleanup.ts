const cleanups: (() => unknown)[] = [];

/** Runs after the test, even if it fails; the latest first. */
export function afterTest(cleanup: () => unknown): void {
  cleanups.push(cleanup);
}

/** For tests with many runs: cleans up now. */
export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}
