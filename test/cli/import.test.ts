import { expect, test } from "bun:test";
import { readFailure } from "../../src/cli/import.ts";

// The errors are simulated: root may read every file, so tests that run as root cannot make an unreadable file.
test.each([
  ["EACCES", "cannot read a.ndjson: this user may not read it"],
  ["EPERM", "cannot read a.ndjson: this user may not read it"],
  ["EIO", "cannot read a.ndjson: EIO: i/o error"],
])("a file that fails with %s is not called missing", (code, message) => {
  const thrown = Object.assign(new Error(`${code}: i/o error`), { code });
  expect(readFailure("a.ndjson", thrown)).toMatchObject({ code: "failed", message });
});
