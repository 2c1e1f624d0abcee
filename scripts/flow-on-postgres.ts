import { flagsWithoutSqliteOnly } from "../test/flow/sqlite-only.ts";
import { hasPostgres } from "../test/support/postgres-server.ts";

// For scripts/test: the flags of `bun test`, one on each line; without PostgreSQL it prints nothing.
if (hasPostgres()) for (const flag of flagsWithoutSqliteOnly()) process.stdout.write(`${flag}\n`);
