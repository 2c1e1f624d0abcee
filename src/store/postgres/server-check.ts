import type { SQL } from "bun";
import { SdsError } from "../../domain/error.ts";
import { nameOf, type ServerAddress } from "./address.ts";
import { type ConnectionOptions, connect, neededSettings } from "./connect.ts";
import { createDeadline } from "./deadline.ts";
import { isConnectionLost, isRefused, isUnreachable, sqlState } from "./errors.ts";
import { sendScript } from "./queries.ts";

const MIN_VERSION = 150_000;
/** A lease of one node is compared with the clock of another, so none may be further off. */
const MAX_CLOCK_DIFFERENCE_MS = 2_000;
/** How often the clock is read, before it counts as wrong: an answer can come late. */
const CLOCK_READINGS = 3;
/** How often two connections are asked which process serves them. */
const ROUNDS = 4;

/** What the program has to know of a server. */
export interface ServerKind {
  /** Whether a pooler is in between. */
  isPooled: boolean;
}

/**
 * Looks at a server before it is used.
 * @param now epoch milliseconds of this machine
 * @throws SdsError `failed` for a server that cannot be used; the driver's error if there is no connection
 */
export async function checkServer(address: ServerAddress, deadlineMs: number, now: () => number): Promise<ServerKind> {
  const options = { address, deadlineMs, isPooled: false };
  try {
    return { isPooled: await look(options, now) };
  } catch (thrown) {
    // A pooler can refuse the settings of a connection. Then it works without them, or this error is not about them.
    if (sqlState(thrown) === "" || isUnreachable(thrown) || isRefused(thrown)) throw thrown;
  }
  await look({ ...options, isPooled: true }, now);
  return { isPooled: true };
}

/** @returns whether the connections are shared with others, or have lost their settings */
async function look(options: ConnectionOptions, now: () => number): Promise<boolean> {
  const [first, second] = [connect(options), connect(options)];
  const deadline = createDeadline(options.deadlineMs, () => {});
  try {
    return await Promise.race([compare(first, second), deadline.passed]);
  } finally {
    deadline.clear();
    await Promise.all([first, second].map((each) => each.close({ timeout: 0 }).catch(() => undefined)));
  }

  async function compare(first: SQL, second: SQL): Promise<boolean> {
    const name = nameOf(options.address);
    checkFacts(await factsOf(first), name);
    await checkClock(first, name, now);
    if (await areShared([first, second])) {
      await checkTransactions(first, name);
      return true;
    }
    return !(await hasSettings(first, options.deadlineMs));
  }
}

/** Asks without preparing anything, because a pooler could mix it up. */
async function ask<T>(connection: SQL, text: string): Promise<T> {
  return (await sendScript(connection, text))[0] as T;
}

/** What a server says of itself. */
export interface ServerFacts {
  version: string;
  /** 180004 for 18.4. */
  versionNumber: string;
  encoding: string;
  readOnly: string;
}

async function factsOf(connection: SQL): Promise<ServerFacts> {
  return ask(
    connection,
    `SELECT current_setting('server_version') AS version, current_setting('server_version_num') AS "versionNumber",
       current_setting('server_encoding') AS encoding, current_setting('transaction_read_only') AS "readOnly"`,
  );
}

/** @param name of the database, for messages. @throws SdsError `failed` for a server that cannot be used */
export function checkFacts({ version, versionNumber, encoding, readOnly }: ServerFacts, name: string): void {
  if (Number(versionNumber) < MIN_VERSION)
    throw new SdsError("failed", `${name} is PostgreSQL ${version}: sds needs version 15 or later`);
  if (encoding !== "UTF8")
    throw new SdsError("failed", `${name} has the encoding ${encoding}: create the database with ENCODING 'UTF8'`);
  if (readOnly !== "off")
    throw new SdsError("failed", `${name} can only be read, as a replica is: name the server that takes writes`);
}

/** The time that is needed for question and answer is not held against the clock. */
async function checkClock(connection: SQL, name: string, now: () => number): Promise<void> {
  let difference = Number.POSITIVE_INFINITY;
  for (let reading = 0; reading < CLOCK_READINGS; reading += 1) {
    const asked = now();
    const { time } = await ask<{ time: number }>(
      connection,
      "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS time",
    );
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
 * Whether a pooler gives a connection to several clients. Then both are served by one process, or one by several: with
 * what is prepared on it, one client would get the answers of another.
 */
async function areShared(connections: readonly SQL[]): Promise<boolean> {
  const seen = connections.map(() => new Set<string>());
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [index, connection] of connections.entries()) {
      const { pid } = await ask<{ pid: number }>(connection, "SELECT pg_backend_pid() AS pid");
      seen[index]?.add(String(pid));
    }
  }
  const processes = seen.flatMap((each) => [...each]);
  return processes.length !== connections.length || new Set(processes).size !== connections.length;
}

/** A pooler can also take the settings of a connection and drop them. */
async function hasSettings(connection: SQL, deadlineMs: number): Promise<boolean> {
  const needed = Object.entries(neededSettings(deadlineMs));
  const names = needed.map(([name]) => `'${name}'`).join(", ");
  const { settings } = await ask<{ settings: string }>(
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
