import { SQL } from "bun";
import type { ServerAddress } from "./address.ts";

export interface ConnectionOptions {
  address: ServerAddress;
  /** Returns the login for a new connection. Default: the login of the address. */
  login?: (() => Pick<ServerAddress, "user" | "password">) | undefined;
  /** How long the server may be silent. The server's own limits are shorter, so it cancels slow statements first. */
  deadlineMs: number;
  /**
   * Whether a pooler may run each transaction on a different server connection, or does not keep a connection's
   * settings. If so, sds prepares no statements, and each transaction sets its own limits.
   */
  isPooled: boolean;
  /** Name of the connection at the server; default: `sds`. */
  name?: string;
}

/**
 * A node may be cut off or paused during a transaction. After this time without a statement, the server ends the
 * transaction and releases its locks. So other nodes wait for less than a second. The node retries the transaction.
 */
const MAX_IDLE_MS = 500;
/**
 * Upper bound of the idle limit when a command retries a transaction. On a busy machine, a command may get no CPU time
 * for half a second.
 */
const MAX_RETRIED_IDLE_MS = 4_000;
/** With these settings the server ends connections of a dead node after a minute instead of two hours. */
const KEEPALIVE = { tcp_keepalives_idle: "30", tcp_keepalives_interval: "10", tcp_keepalives_count: "3" };

/** Upper bound of the network timeouts, even if a statement has a longer deadline. */
const LONGEST_SILENCE_MS = 10_000;

/** Returns the settings that each transaction needs: its limits in milliseconds, and `jit`. */
export function neededSettings(deadlineMs: number): Record<string, string> {
  const lockMs = Math.ceil(deadlineMs * 0.4);
  return {
    statement_timeout: String(Math.ceil(deadlineMs * 0.8)),
    lock_timeout: String(lockMs),
    idle_in_transaction_session_timeout: String(Math.min(lockMs, MAX_IDLE_MS)),
    // With `jit` the server compiles expensive statements, which takes a second. In a new database the planner
    // overestimates row counts, so the server would also compile cheap statements.
    jit: "off",
  };
}

/** Returns the settings of a connection. */
export function connectionSettings(options: ConnectionOptions): Record<string, string> {
  const { address, deadlineMs, name = "sds" } = options;
  const keepalive = address.socketPath === null && { ...KEEPALIVE, tcp_user_timeout: String(silenceMsOf(deadlineMs)) };
  return { application_name: name, ...neededSettings(deadlineMs), ...keepalive };
}

/** Makes a driver pool of one connection. The first statement opens the connection. */
export function connect(options: ConnectionOptions): SQL {
  const { address, deadlineMs, isPooled } = options;
  const { host, port, socketPath, database, tls } = address;
  const { user, password } = options.login?.() ?? address;
  return new SQL({
    adapter: "postgres",
    ...(socketPath === null ? { hostname: host, port } : { path: socketPath }),
    username: user,
    password,
    database,
    tls: tls ?? false,
    max: 1,
    idleTimeout: 0,
    bigint: true,
    connectionTimeout: silenceMsOf(deadlineMs) / 2 / 1_000,
    prepare: !isPooled,
    // Poolers refuse unknown settings.
    ...(!isPooled && { connection: connectionSettings(options) }),
  } as SQL.Options);
}

function silenceMsOf(deadlineMs: number): number {
  return Math.min(deadlineMs, LONGEST_SILENCE_MS);
}

/** Returns SQL that begins a transaction behind a pooler, and sets the connection's name and `neededSettings`. */
export function beginText(deadlineMs: number, name: string): string {
  const needed = { application_name: name, ...neededSettings(deadlineMs) };
  const settings = Object.entries(needed).map(([setting, value]) => `SET LOCAL ${setting} = '${value}'`);
  return ["BEGIN", ...settings].join("; ");
}

/** Returns the statement that raises the idle limit. @param idleEnds how often the transaction exceeded the limit */
export function longerIdleText(idleEnds: number): string {
  const idleMs = Math.min(MAX_IDLE_MS * 2 ** idleEnds, MAX_RETRIED_IDLE_MS);
  return `SET LOCAL idle_in_transaction_session_timeout = ${idleMs}`;
}
