import { flagsWithoutSqliteOnly } from "../test/flow/sqlite-only.ts";
import { hasPostgres } from "../test/support/postgres-server.ts";

// For scripts/test: the flags of `bun test`, one on each line, and exit status 1 where there is no PostgreSQL.
for (const flag of flagsWithoutSqliteOnly()) process.stdout.write(`${flag}\n`);
process.exitCode = hasPostgres() ? 0 : 1;
