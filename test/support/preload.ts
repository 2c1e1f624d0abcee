import { afterEach, spyOn } from "bun:test";
import { cleanUp } from "./cleanup.ts";

// bunfig.toml preloads this file. If test files imported it, the hook would run only for the first test file. The hook
// is not in cleanup.ts, because scripts import modules that use cleanup.ts, and scripts have no test runner.
afterEach(cleanUp);

// A load collects garbage after each page. In a test process with a large heap, that would take most of the time.
spyOn(Bun, "gc").mockImplementation(() => 0);
