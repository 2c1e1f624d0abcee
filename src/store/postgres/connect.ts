import { SQL } from "bun";
import type { ServerAddress } from "./address.ts";

/** How connections to a server are made. */
export interface ConnectionOptions {
  address: ServerAddress;
  /** How long the server may be silent; its own limits are shorter, so that it is the server that ends what is slow. */
  deadlineMs: number;
  /**
   * Whether a pooler may give each transaction another connection of its own, or refuses settings of a connection. Then
   * nothing is prepared, and each transaction sets its limits.
   */
  isPooled: boolean;
}

/**
 * A node that was cut off, or stands still, in a transaction holds its locks for no longer than this, so that other
 * nodes still answer within a second. A transaction that is ended so is run again.
 */
const MAX_IDLE_MS = 500;
/** The server ends connections to a node that is gone after a minute, instead of two hours. */
const KEEPALIVE = { tcp_keepalives_idle: "30", tcp_keepalives_interval: "10", tcp_keepalives_count: "3" };

/** A connection on which nothing arrives for so long is of no use, also where a statement may take longer. */
const LONGEST_SILENCE_MS = 10_000;

/** What each transaction needs, by the names of the server's settings: its own limits, in milliseconds. */
export function neededSettings(deadlineMs: number): Record<string, string> {
  const lockMs = Math.ceil(deadlineMs * 0.4);
  return {
    statement_timeout: String(Math.ceil(deadlineMs * 0.8)),
    lock_timeout: String(lockMs),
    idle_in_transaction_session_timeout: String(Math.min(lockMs, MAX_IDLE_MS)),
    // Compiling a statement takes a second, and begins where the planner expects too many rows of a new database.
    jit: "off",
  };
}

/** What a connection is told when it begins. */
export function connectionSettings({ address, deadlineMs }: ConnectionOptions): Record<string, string> {
  const keepalive = address.socketPath === null && { ...KEEPALIVE, tcp_user_timeout: String(silenceMsOf(deadlineMs)) };
  return { application_name: "sds", ...neededSettings(deadlineMs), ...keepalive };
}

/** A pool of the driver with one connection, which is made with the first statement. */
export function connect(options: ConnectionOptions): SQL {
  const { address, deadlineMs, isPooled } = options;
  const { host, port, socketPath, user, password, database, tls } = address;
  return new SQL({
    adapter: "postgres",
    ...(socketPath === null ? { hostname: host, port } : { path: socketPath }),
    username: user,
    password,
    database,
    tls: tls ?? false,
    max: 1,
    idleTimeout: 0,
    connectionTimeout: silenceMsOf(deadlineMs) / 2 / 1_000,
    prepare: !isPooled,
    // A pooler refuses what it does not know.
    ...(!isPooled && { connection: connectionSettings(options) }),
  } as SQL.Options);
}

function silenceMsOf(deadlineMs: number): number {
  return Math.min(deadlineMs, LONGEST_SILENCE_MS);
}

/** Begins a transaction. Behind a pooler it sets what it needs, which ends with the transaction. */
export function beginText(deadlineMs: number): string {
  const settings = Object.entries(neededSettings(deadlineMs)).map(([name, value]) => `SET LOCAL ${name} = ${value}`);
  return ["BEGIN", ...settings].join("; ");
}
