import type { SQL } from "bun";
import { StoreError } from "../port/store-error.ts";
import { beginText, type ConnectionOptions, connect, longerIdleText } from "./connect.ts";
import { createConnectionPool } from "./connection-pool.ts";
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
import { type Queries, queriesOf, send } from "./queries.ts";
import { createTransaction, type Transaction, type TransactionQueries } from "./transaction.ts";

export { columnArrays, type Parameter, pipeline, type Queries } from "./queries.ts";

/** @throws StoreError from every method */
export interface Database extends Queries {
  /**
   * Runs a transaction (READ COMMITTED: each statement sees earlier commits). Retries after a conflict with another
   * transaction, and after a connection lost before COMMIT. So `work` must have no effect outside of the transaction.
   */
  transaction<T>(work: (tx: TransactionQueries) => Promise<T>): Promise<T>;
  /** Waits briefly for running operations, and refuses later ones. */
  close(): Promise<void>;
}

export interface DatabaseOptions extends ConnectionOptions {
  /** Maximum of connections. */
  connections: number;
  /** How long an operation waits for a free connection, or for an unreachable server. */
  waitMs: number;
  sleep: (ms: number) => Promise<void>;
}

/** Maximum of attempts of a transaction that conflicts with others. */
const MAX_RUNS = 6;
/**
 * Maximum of attempts if the server refuses the login. If the password was changed, the first attempt may find its
 * connection lost. The second may still use the old password.
 */
const MAX_LOGINS = 3;
const FIRST_PAUSE_MS = 4;
const LONGEST_PAUSE_MS = 500;
/**
 * Minimum time between two closings of the idle connections. Otherwise every write would close them while a server is
 * read-only, which may last hours.
 */
const DISCARD_PAUSE_MS = 1_000;
/** Matches statements that certainly only read. */
const READS = /^\s*(SELECT|WITH)\b(?!.*\b(INSERT|UPDATE|DELETE)\b)/s;

/**
 * Opens connections to a PostgreSQL server. Each operation has a deadline, because a network may drop packets silently.
 * A missed deadline also closes the idle connections.
 */
export function openConnections(options: DatabaseOptions): Database {
  const { deadlineMs, isPooled } = options;
  const begin = isPooled ? beginText(deadlineMs) : "BEGIN";
  const connections = createConnections(options);

  async function transaction<T>(work: (tx: TransactionQueries) => Promise<T>, isRead = () => false): Promise<T> {
    let last: Transaction<T> | undefined;
    let idleEnds = 0;
    const run = () => {
      last = undefined;
      const begun = idleEnds === 0 ? begin : `${begin}; ${longerIdleText(idleEnds)}`;
      return connections.use(
        async (connection, heard) => {
          // A connection that is not reserved would reconnect by itself, outside of the transaction.
          const reserved = await connection.reserve();
          last = createTransaction(reserved, begun, work, heard);
          return last.result().finally(() => reserved.release());
        },
        () => last?.abandon(),
      );
    };
    const isSafe = (thrown: unknown) => isConnectionLost(thrown) && (last?.isCommitting() !== true || isRead());
    return connections.retry(run, (thrown) => {
      if (wasIdleTooLong(thrown)) idleEnds += 1;
      return isUndone(thrown) || isSafe(thrown);
    });
  }

  function one<T>(text: string, ask: (queries: Queries) => Promise<T>): Promise<T> {
    const isRead = () => READS.test(text);
    if (isPooled) return transaction(ask, isRead);
    return connections.retry(
      () => connections.use((connection) => ask(queriesOf((_, parameters) => send(connection, text, parameters)))),
      (thrown) => isUndone(thrown) || (isConnectionLost(thrown) && isRead()),
    );
  }

  return {
    all: (text, parameters) => one(text, (queries) => queries.all(text, parameters)),
    get: (text, parameters) => one(text, (queries) => queries.get(text, parameters)),
    run: (text, parameters) => one(text, (queries) => queries.run(text, parameters)),
    transaction: (work) => transaction(work),
    close: connections.close,
  };
}

/** Whether nothing was committed: nothing was sent, the server is read-only, or it ended the idle transaction. */
function isUndone(thrown: unknown): boolean {
  return isUnreachable(thrown) || isReadOnly(thrown) || wasIdleTooLong(thrown);
}

function createConnections(options: DatabaseOptions) {
  const { deadlineMs, waitMs, sleep } = options;
  const pool = createConnectionPool(() => connect(options), options.connections);
  let isClosed = false;
  let discardedAt = Number.NEGATIVE_INFINITY;

  /** Closes idle connections: they use the same broken network, or lead to a server that was replaced. */
  function discardIdle(): void {
    const now = performance.now();
    if (now - discardedAt < DISCARD_PAUSE_MS) return;
    discardedAt = now;
    pool.discardIdle();
  }

  return {
    /** Runs work on a free connection. Calls `giveUp` if the deadline passes without an answer. */
    async use<T>(work: (connection: SQL, heard: () => void) => Promise<T>, giveUp = () => {}): Promise<T> {
      const connection = await pool.take(waitMs);
      const deadline = createDeadline(deadlineMs, giveUp);
      try {
        if (isClosed) throw new StoreError("lost", new Error("the database was closed"));
        return await Promise.race([work(connection, deadline.extend), deadline.passed]);
      } catch (thrown) {
        const concernsAll = deadline.isPassed() || isReadOnly(thrown) || isRefused(thrown);
        if (concernsAll || isConnectionLost(thrown)) pool.discard(connection);
        if (concernsAll) discardIdle();
        throw thrown;
      } finally {
        deadline.clear();
        pool.giveBack(connection);
      }
    },

    /** Runs work again after a conflict, or if `isSafeToRepeat` finds that nothing was committed. @throws StoreError */
    async retry<T>(work: () => Promise<T>, isSafeToRepeat: (thrown: unknown) => boolean): Promise<T> {
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
          if (!mayRetry || isClosed) throw storeErrorOf(thrown);
        }
        await sleep(pauseMs);
        pauseMs = Math.min(pauseMs * 3, LONGEST_PAUSE_MS);
      }
    },

    async close(): Promise<void> {
      isClosed = true;
      await pool.close();
    },
  };
}
