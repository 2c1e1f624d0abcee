import { parseServerAddress } from "../../src/store/postgres/address.ts";
import { type Database, type DatabaseOptions, openConnections } from "../../src/store/postgres/database.ts";
import { afterTest } from "./cleanup.ts";

/** The same address with another port, such as a proxy's. */
export function withPort(url: string, port: number): string {
  const other = new URL(url);
  other.port = String(port);
  return other.href;
}

/** How many sessions of a database run or wait in a statement that begins with this text. */
export async function countRunning(db: Database, beginning: string): Promise<number> {
  const found = await db.get<{ n: number }>(
    `SELECT count(*)::int4 AS n FROM pg_stat_activity
     WHERE datname = current_database() AND state = 'active' AND starts_with(query, $1::text)`,
    [beginning],
  );
  return found?.n ?? 0;
}

/** How many sessions of a database wait for a lock. */
export async function countLockWaits(db: Database): Promise<number> {
  const found = await db.get<{ n: number }>(
    "SELECT count(*)::int4 AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
  );
  return found?.n ?? 0;
}

/** Whether a session of the server still exists. */
export async function hasSession(db: Database, pid: number): Promise<boolean> {
  return (await db.get("SELECT 1 AS one FROM pg_stat_activity WHERE pid = $1::int", [pid])) !== undefined;
}

/** Lets a transaction be idle for as long as a test wants. */
export const NO_IDLE_LIMIT = "SET LOCAL idle_in_transaction_session_timeout = 0";

/** Opens connections with short time limits. They are closed after the test. */
export function openDatabase(url: string, options: Partial<DatabaseOptions> = {}): Database {
  const db = openConnections({
    address: parseServerAddress(url, null),
    connections: 4,
    deadlineMs: 5_000,
    waitMs: 2_000,
    isPooled: false,
    sleep: Bun.sleep,
    ...options,
  });
  afterTest(() => db.close());
  return db;
}
