import type { SQL } from "bun";
import { SdsError } from "../../domain/error.ts";
import { nameOf, type ServerAddress } from "./address.ts";
import { type ConnectionOptions, connect, neededSettings } from "./connect.ts";
import { createDeadline } from "./deadline.ts";
import { isConnectionLost, isRefused, isUnreachable, sqlState } from "./errors.ts";
import { sendScript } from "./queries.ts";

const MIN_VERSION = 150_000;
/** Maximum difference from the server's clock. A node compares the leases of other nodes with its own clock. */
const MAX_CLOCK_DIFFERENCE_MS = 2_000;
/** Number of clock readings before the check fails. One reading is not enough, because an answer may be late. */
const CLOCK_READINGS = 3;
/** How many times the check asks each of two connections for its backend process. */
const ROUNDS = 4;

/** Reads the server's clock as `time`, epoch milliseconds. */
export const READ_CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS time";

export interface ServerKind {
  /** Whether a pooler is between sds and the server. */
  isPooled: boolean;
}

/**
 * Checks a server before its first use.
 * @param now epoch milliseconds of this machine
 * @param isStandby whether the server may be a standby. Nothing depends on the clock of a standby.
 * @throws SdsError `failed` for an unusable server; the driver's error if no connection is possible
 */
export async function checkServer(
  address: ServerAddress,
  deadlineMs: number,
  now: () => number,
  { isStandby = false } = {},
): Promise<ServerKind> {
  const options = { address, deadlineMs, isPooled: false, isStandby };
  try {
    return { isPooled: await sessionsAreShared(options, now) };
  } catch (thrown) {
    // These errors do not come from a pooler that refuses the settings. After any other error, the check runs again
    // without settings.
    if (sqlState(thrown) === "" || isUnreachable(thrown) || isRefused(thrown)) throw thrown;
  }
  await sessionsAreShared({ ...options, isPooled: true }, now);
  return { isPooled: true };
}

/** Checks the server. @returns whether a pooler shares our two connections, or has dropped their settings */
async function sessionsAreShared(
  options: ConnectionOptions & { isStandby: boolean },
  now: () => number,
): Promise<boolean> {
  const [first, second] = [connect(options), connect(options)];
  const deadline = createDeadline(options.deadlineMs, () => {});
  try {
    return await Promise.race([checkSessions(first, second), deadline.passed]);
  } finally {
    deadline.clear();
    await Promise.all([first, second].map((each) => each.close({ timeout: 0 }).catch(() => undefined)));
  }

  async function checkSessions(first: SQL, second: SQL): Promise<boolean> {
    const name = nameOf(options.address);
    const facts = await factsOf(first);
    checkFacts(options.isStandby ? { ...facts, readOnly: "off" } : facts, name);
    if (!options.isStandby) await checkClock(first, name, now);
    if (await haveSameBackend([first, second])) {
      await checkTransactions(first, name);
      return true;
    }
    return !(await hasSettings(first, options.deadlineMs));
  }
}

/** Runs a query for one row. Prepares nothing, because a pooler may mix up prepared statements. */
async function queryOne<T>(connection: SQL, text: string): Promise<T> {
  return (await sendScript(connection, text))[0] as T;
}

export interface ServerFacts {
  version: string;
  /** For example 180004 for 18.4. */
  versionNumber: string;
  encoding: string;
  readOnly: string;
}

async function factsOf(connection: SQL): Promise<ServerFacts> {
  return queryOne(
    connection,
    `SELECT current_setting('server_version') AS version, current_setting('server_version_num') AS "versionNumber",
       current_setting('server_encoding') AS encoding, current_setting('transaction_read_only') AS "readOnly"`,
  );
}

/** @param name the database's name in messages. @throws SdsError `failed` for an unusable server */
export function checkFacts({ version, versionNumber, encoding, readOnly }: ServerFacts, name: string): void {
  if (Number(versionNumber) < MIN_VERSION)
    throw new SdsError("failed", `${name} is PostgreSQL ${version}: sds needs version 15 or later`);
  if (encoding !== "UTF8")
    throw new SdsError("failed", `${name} has the encoding ${encoding}: create the database with ENCODING 'UTF8'`);
  if (readOnly !== "off")
    throw new SdsError("failed", `${name} can only be read, as a replica is: name the server that takes writes`);
}

/** Compares the clocks. Ignores a difference that the round trip alone can explain. */
async function checkClock(connection: SQL, name: string, now: () => number): Promise<void> {
  let difference = Number.POSITIVE_INFINITY;
  for (let reading = 0; reading < CLOCK_READINGS; reading += 1) {
    const asked = now();
    const { time } = await queryOne<{ time: number }>(connection, READ_CLOCK);
    const answered = now();
    const ahead = time > answered ? time - answered : Math.min(time - asked, 0);
    if (Math.abs(ahead) < Math.abs(difference)) difference = ahead;
    if (Math.abs(difference) <= MAX_CLOCK_DIFFERENCE_MS) return;
  }
  const seconds = (Math.abs(difference) / 1_000).toFixed(1);
  throw new SdsError(
    "failed",
    `the clock of ${name} is ${seconds} s ${difference > 0 ? "ahead of" : "behind"} the clock of this machine: ` +
      "set both by NTP, then start again; at most 2 s are allowed",
  );
}

/**
 * Whether a pooler shares connections: one server process serves both of our connections, or several processes serve
 * one connection. With prepared statements, a client could then get the answer for another client.
 */
async function haveSameBackend(connections: readonly SQL[]): Promise<boolean> {
  const seen = connections.map(() => new Set<string>());
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [index, connection] of connections.entries()) {
      const { pid } = await queryOne<{ pid: number }>(connection, "SELECT pg_backend_pid() AS pid");
      seen[index]?.add(String(pid));
    }
  }
  const processes = seen.flatMap((each) => [...each]);
  return processes.length !== connections.length || new Set(processes).size !== connections.length;
}

/** Whether a connection kept its settings: a pooler may drop them silently. */
async function hasSettings(connection: SQL, deadlineMs: number): Promise<boolean> {
  const needed = Object.entries(neededSettings(deadlineMs));
  const names = needed.map(([name]) => `'${name}'`).join(", ");
  const { settings } = await queryOne<{ settings: string }>(
    connection,
    `SELECT json_object_agg(name, setting)::text AS settings FROM pg_settings WHERE name IN (${names})`,
  );
  const found = JSON.parse(settings) as Record<string, string>;
  return needed.every(([name, value]) => found[name] === value);
}

async function checkTransactions(connection: SQL, name: string): Promise<void> {
  try {
    await sendScript(connection, "BEGIN");
    await sendScript(connection, "COMMIT");
  } catch (thrown) {
    if (isConnectionLost(thrown) && sqlState(thrown) !== "08P01") throw thrown;
    throw new SdsError(
      "failed",
      `the pooler in front of ${name} allows no transactions: set its pool mode to transaction or session`,
      { cause: thrown },
    );
  }
}
