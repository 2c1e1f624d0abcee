import { flagsWithoutSqliteOnly } from "../test/flow/sqlite-only.ts";

// One on each line, for scripts/test.
process.stdout.write(
  flagsWithoutSqliteOnly()
    .map((flag) => `${flag}\n`)
    .join(""),
);
