import { flagsWithoutSqliteOnly } from "../test/flow/sqlite-only.ts";
import { hasPostgres } from "../test/support/postgres-server.ts";

// For scripts/test: prints the flags of `bun test` that leave out the tests of SQLITE_ONLY, one on each line. Prints
// nothing without PostgreSQL.
if (hasPostgres()) for (const flag of flagsWithoutSqliteOnly()) process.stdout.write(`${flag}\n`);
