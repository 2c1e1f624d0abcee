import { flagsWithoutSqliteOnly } from "../test/flow/sqlite-only.ts";
import { hasPostgres } from "../test/support/postgres-server.ts";

// For scripts/test: prints the flags with which `bun test` leaves out the tests that SQLITE_ONLY names, one flag on
// each line. Prints nothing without PostgreSQL.
if (hasPostgres()) for (const flag of flagsWithoutSqliteOnly()) process.stdout.write(`${flag}\n`);
