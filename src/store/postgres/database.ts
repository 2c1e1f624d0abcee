import { StoreError } from "../port/store-error.ts";
import { beginText, type ConnectionOptions, connect, longerIdleText } from "./connect.ts";
import { createConnectionPool, type PooledConnection } from "./connection-pool.ts";
import { createDeadline } from "./deadline.ts";
import {
  isConnectionLost,
  isReadOnly,
  isRefused,
  isRepeatable,
  isUnreachable,
  storeErrorOf,
  wasIdleTooLong,
} from "./errors.ts";
import { type Parameter, type Queries, queriesOf, send, sendScript } from "./queries.ts";
import { createStandbyWaits, standbyMissing } from "./standby-waits.ts";
import { createTransaction, type Transaction, type TransactionQueries } from "./transaction.ts";

export { columnArrays, type Parameter, pipeline, type Queries, type Writes } from "./queries.ts";

/** @throws StoreError from every method */
export interface Database extends Queries {
  /**
   * Runs a transaction (READ COMMITTED: each statement sees earlier commits). Retries after a conflict with another
   * transaction, and if the connection is lost before COMMIT. So `work` must have no effect outside of the transaction.
   */
  transaction<T>(work: (tx: TransactionQueries) => Promise<T>): Promise<T>;
  /** Runs a statement that PostgreSQL refuses in a transaction, such as CREATE INDEX CONCURRENTLY. Never repeats it. */
  alone(text: string): Promise<void>;
  /** Waits briefly for running operations, and refuses later ones. */
  close(): Promise<void>;
}

export interface DatabaseOptions extends ConnectionOptions {
  /**
   * The connections get this name and a number. No other process may use the name. Without a name, commits that wait
   * for a standby are not cancelled on the server.
   */
  name?: string;
  /**
   * Whether a retry has a longer idle limit, if the server ended the transaction because it was idle. Nodes do not set
   * this, because other nodes would wait longer for the transaction's locks.
   */
  isPatient?: boolean;
  /** Maximum number of connections. */
  connections: number;
  /** How long an operation waits for a free connection, or for an unreachable server. */
  waitMs: number;
  sleep: (ms: number) => Promise<void>;
}

/** Maximum number of attempts if an operation conflicts with other transactions. */
const MAX_RUNS = 6;
/**
 * Maximum number of attempts if the server refuses the login. After a password change, the first attempt may lose its
 * connection. The second attempt may still use the old password.
 */
const MAX_LOGINS = 3;
const FIRST_PAUSE_MS = 4;
const LONGEST_PAUSE_MS = 500;
/**
 * Minimum time between two closings of the idle connections. A server may be read-only for hours. Without this limit,
 * every write to such a server would close the connections.
 */
const DISCARD_PAUSE_MS = 1_000;
/** Time limit of the query that finds commits that wait for a standby. */
const VISIT_DEADLINE_MS = 2_000;
/** Matches statements that certainly only read. */
const READS = /^\s*(SELECT|WITH)\b(?!.*\b(INSERT|UPDATE|DELETE)\b)/s;

/**
 * Opens connections to a PostgreSQL server. Each operation has a deadline, because a network may drop packets silently.
 * A missed deadline also closes the idle connections.
 */
export function openConnections(options: DatabaseOptions): Database {
  const { deadlineMs, isPooled } = options;
  const connections = createConnections(options);
  const readingTexts = new Map<string, boolean>();

  /** Whether a statement certainly only reads. The texts are constants of the program, so few texts are remembered. */
  function isReading(text: string): boolean {
    const isKnown = readingTexts.get(text);
    if (isKnown !== undefined) return isKnown;
    const isRead = READS.test(text);
    readingTexts.set(text, isRead);
    return isRead;
  }

  async function transaction<T>(work: (tx: TransactionQueries) => Promise<T>, isRead = false): Promise<T> {
    let last: Transaction<T> | undefined;
    let idleEnds = 0;
    const run = () => {
      last = undefined;
      return connections.use(
        !isRead,
        async ({ sql, name }, heard) => {
          // A connection that is not reserved would reconnect by itself, outside of the transaction.
          const reserved = await sql.reserve();
          const begin = isPooled ? beginText(deadlineMs, name) : "BEGIN";
          const begun = idleEnds === 0 ? begin : `${begin}; ${longerIdleText(idleEnds)}`;
          last = createTransaction(reserved, begun, work, heard);
          return last.result().finally(() => reserved.release());
        },
        () => last?.abandon(),
      );
    };
    const isSafe = (thrown: unknown) => isConnectionLost(thrown) && (last?.isCommitting() !== true || isRead);
    return connections.retry(run, (thrown) => {
      if (options.isPatient === true && wasIdleTooLong(thrown)) idleEnds += 1;
      return isUndone(thrown) || isSafe(thrown);
    });
  }

  function one<T>(text: string, ask: (queries: Queries) => Promise<T>): Promise<T> {
    const isRead = isReading(text);
    if (isPooled) return transaction(ask, isRead);
    return connections.retry(
      () => connections.use(!isRead, ({ sql }) => ask(queriesOf((_, parameters) => send(sql, text, parameters)))),
      (thrown) => isUndone(thrown) || (isConnectionLost(thrown) && isRead),
    );
  }

  return {
    all: (text, parameters) => one(text, (queries) => queries.all(text, parameters)),
    get: (text, parameters) => one(text, (queries) => queries.get(text, parameters)),
    run: (text, parameters) => one(text, (queries) => queries.run(text, parameters)),
    transaction: (work) => transaction(work),
    async alone(text) {
      await connections.retry(
        () => connections.use(true, ({ sql }) => sendScript(sql, text)),
        () => false,
      );
    },
    close: connections.close,
  };
}

/** Whether nothing was committed, because the server was unreachable, is read-only or ended the idle transaction. */
function isUndone(thrown: unknown): boolean {
  return isUnreachable(thrown) || isReadOnly(thrown) || wasIdleTooLong(thrown);
}

/** Limits the rate of `discardIdle`. Idle connections may use a broken network, or lead to a replaced server. */
function notTooOften(discardIdle: () => void): () => void {
  let discardedAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (now - discardedAt < DISCARD_PAUSE_MS) return;
    discardedAt = now;
    discardIdle();
  };
}

function createConnections(options: DatabaseOptions) {
  const { deadlineMs, waitMs, name } = options;
  let opened = 0;
  const pool = createConnectionPool(open, options.connections);
  const standbyWaits = createStandbyWaits(
    (text, parameters) => askOnce(options, text, parameters),
    () => pool.refuseWaitingWrites(standbyMissing()),
  );
  let isClosed = false;
  const discardIdle = notTooOften(pool.discardIdle);

  function open(): PooledConnection {
    opened += 1;
    const ownName = name === undefined ? "sds" : `sds ${name} ${opened}`;
    return { sql: connect({ ...options, name: ownName }), name: ownName };
  }

  return {
    /** Runs work on a free connection. Calls `giveUp` if the deadline passes without an answer. */
    async use<T>(
      isWrite: boolean,
      work: (connection: PooledConnection, heard: () => void) => Promise<T>,
      giveUp = () => {},
    ): Promise<T> {
      if (isWrite && standbyWaits.areStuck()) throw standbyMissing();
      const connection = await pool.take(waitMs, isWrite);
      const deadline = createDeadline(deadlineMs, giveUp);
      const watched = isWrite && name !== undefined ? standbyWaits.watch(connection.name) : undefined;
      const heard = () => {
        deadline.extend();
        watched?.heard();
      };
      let isGivenUp = false;
      try {
        if (isClosed) throw new StoreError("lost", new Error("the database was closed"));
        return await Promise.race([work(connection, heard), deadline.passed]);
      } catch (thrown) {
        const concernsAll = deadline.isPassed() || isReadOnly(thrown) || isRefused(thrown);
        isGivenUp = concernsAll || isConnectionLost(thrown);
        if (isGivenUp) pool.discard(connection);
        if (watched?.isWaiting() === true && deadline.isPassed()) throw standbyMissing();
        if (concernsAll) discardIdle();
        throw thrown;
      } finally {
        deadline.clear();
        watched?.end();
        const giveBack = () => pool.giveBack(connection, isWrite);
        // Frees the connection after the cancel. Otherwise many server processes could wait for a standby at once.
        if (watched !== undefined && isGivenUp) void standbyWaits.cancel([connection.name]).then(giveBack);
        else giveBack();
      }
    },

    /** Like `retryWork`, but retries nothing after `close`. */
    retry: <T>(work: () => Promise<T>, isSafeToRepeat: (thrown: unknown) => boolean) =>
      retryWork(work, (thrown) => !isClosed && isSafeToRepeat(thrown), options),

    async close(): Promise<void> {
      isClosed = true;
      await pool.close();
      await standbyWaits.close();
    },
  };
}

/** Retries work after a conflict or a refused login, and whenever `isSafeToRepeat` allows it. @throws StoreError */
async function retryWork<T>(
  work: () => Promise<T>,
  isSafeToRepeat: (thrown: unknown) => boolean,
  { waitMs, sleep }: Pick<DatabaseOptions, "waitMs" | "sleep">,
): Promise<T> {
  const began = performance.now();
  let pauseMs = FIRST_PAUSE_MS;
  for (let run = 1; ; run += 1) {
    try {
      return await work();
    } catch (thrown) {
      const mayRetry =
        (isRepeatable(thrown) && run < MAX_RUNS) ||
        (isRefused(thrown) && run < MAX_LOGINS) ||
        (isSafeToRepeat(thrown) && performance.now() - began < waitMs);
      if (!mayRetry) throw storeErrorOf(thrown);
    }
    await sleep(pauseMs);
    pauseMs = Math.min(pauseMs * 3, LONGEST_PAUSE_MS);
  }
}

/** Runs a statement on a separate connection. */
async function askOnce<T>(options: DatabaseOptions, text: string, parameters: readonly Parameter[]): Promise<T[]> {
  const { name: _, ...unnamed } = options;
  const deadlineMs = Math.min(options.deadlineMs, VISIT_DEADLINE_MS);
  const db = openConnections({ ...unnamed, connections: 1, deadlineMs, waitMs: 0 });
  try {
    return await db.all<T>(text, parameters);
  } finally {
    await db.close();
  }
}
