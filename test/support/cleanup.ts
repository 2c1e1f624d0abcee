import { afterEach, spyOn } from "bun:test";

const cleanups: (() => unknown)[] = [];

/** Runs after the test, even if it fails; the latest first. */
export function afterTest(cleanup: () => unknown): void {
  cleanups.push(cleanup);
}

/** For tests with many runs: cleans up now. */
export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

// bunfig.toml preloads this file. If test files imported it, the hook would run only for the first of them.
afterEach(cleanUp);

// A load collects garbage after each page. In a test process with a large heap, that would take most of the time.
spyOn(Bun, "gc").mockImplementation(() => 0);
