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

// bunfig.toml loads this before all tests: a hook of a module that several test files share would hold for the first of
// them alone.
afterEach(cleanUp);

// A load collects garbage after each page. Beside all that the tests of a process keep, that takes most of their time.
spyOn(Bun, "gc").mockImplementation(() => 0);
