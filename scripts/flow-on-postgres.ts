import { flagsWithoutSqliteOnly } from "../test/flow/sqlite-only.ts";
import { hasPostgres } from "../test/support/postgres-server.ts";

// scripts/test runs this script. It prints flags, one on each line. With these flags, `bun test` skips the tests in
// SQLITE_ONLY. Without PostgreSQL, the script prints nothing.
if (hasPostgres()) for (const flag of flagsWithoutSqliteOnly()) process.stdout.write(`${flag}\n`);
