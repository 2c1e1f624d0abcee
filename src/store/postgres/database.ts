import type { SQL } from "bun";
import { StoreError } from "../port/store-error.ts";
import { beginText, type ConnectionOptions, connect } from "./connect.ts";
import { createConnectionPool } from "./connection-pool.ts";
import { createDeadline } from "./deadline.ts";
import { isConnectionLost, isReadOnly, isRepeatable, isUnreachable, storeErrorOf, wasIdleTooLong } from "./errors.ts";
import { type Queries, queriesOf, send } from "./queries.ts";
import { createTransaction, type Transaction, type TransactionQueries } from "./transaction.ts";

export { type Parameter, type Queries, together } from "./queries.ts";

/** @throws StoreError from every method */
export interface Database extends Queries {
  /**
   * Runs a transaction (READ COMMITTED: each statement sees what was committed before it). It is run again if it met
   * another transaction, or lost its connection before it was committed, so `work` must have no effect elsewhere.
   */
  transaction<T>(work: (tx: TransactionQueries) => Promise<T>): Promise<T>;
  /** Waits for a moment for what is under way. Everything after it is refused. */
  close(): Promise<void>;
}

export interface DatabaseOptions extends ConnectionOptions {
  /** Connections at most. */
  connections: number;
  /** How long an operation waits for one of the connections, or for a server that cannot be reached. */
  waitMs: number;
  sleep: (ms: number) => Promise<void>;
}

/** How often a transaction that met another one is run. */
const MAX_RUNS = 6;
const FIRST_PAUSE_MS = 4;
const LONGEST_PAUSE_MS = 500;
/** Idle connections are closed no more often than this: a server can refuse to write for hours. */
const DISCARD_PAUSE_MS = 1_000;
/** A text that only reads. Whatever else is not known to. */
const READS = /^\s*(SELECT|WITH)\b(?!.*\b(INSERT|UPDATE|DELETE)\b)/s;

/**
 * Connections to a PostgreSQL server. In a network that swallows everything an operation would hang for ever, so each
 * one has a deadline. After it, new connections are made for all that follows.
 */
export function openConnections(options: DatabaseOptions): Database {
  const { deadlineMs, waitMs, isPooled, sleep } = options;
  const begin = isPooled ? beginText(deadlineMs) : "BEGIN";
  const pool = createConnectionPool(() => connect(options), options.connections);
  let isClosed = false;
  let discardedAt = Number.NEGATIVE_INFINITY;

  /** They go the same way: through a network that swallows everything, or to a server that others have replaced. */
  function discardOthers(): void {
    const now = performance.now();
    if (now - discardedAt < DISCARD_PAUSE_MS) return;
    discardedAt = now;
    pool.discardIdle();
  }

  /** Runs something when a connection is free, and gives it up when nothing is heard for too long. */
  async function withConnection<T>(
    work: (connection: SQL, heard: () => void) => Promise<T>,
    giveUp = () => {},
  ): Promise<T> {
    const connection = await pool.take(waitMs);
    const deadline = createDeadline(deadlineMs, giveUp);
    try {
      if (isClosed) throw new StoreError("lost", new Error("the database was closed"));
      return await Promise.race([work(connection, deadline.extend), deadline.passed]);
    } catch (thrown) {
      const isOfServer = deadline.isPassed() || isReadOnly(thrown);
      if (isOfServer || isConnectionLost(thrown)) pool.discard(connection);
      if (isOfServer) discardOthers();
      throw thrown;
    } finally {
      deadline.clear();
      pool.giveBack(connection);
    }
  }

  /** @param isSafeToRepeat whether, after this error, nothing can have been committed */
  async function repeated<T>(work: () => Promise<T>, isSafeToRepeat: (thrown: unknown) => boolean): Promise<T> {
    const began = performance.now();
    let pauseMs = FIRST_PAUSE_MS;
    for (let run = 1; ; run += 1) {
      try {
        return await work();
      } catch (thrown) {
        const isAgain = isRepeatable(thrown)
          ? run < MAX_RUNS
          : isSafeToRepeat(thrown) && performance.now() - began < waitMs;
        if (!isAgain || isClosed) throw storeErrorOf(thrown);
      }
      await sleep(pauseMs);
      pauseMs = Math.min(pauseMs * 3, LONGEST_PAUSE_MS);
    }
  }

  /** Nothing was sent, nothing can be written there, or the server ended the transaction before its COMMIT. */
  const isUndone = (thrown: unknown) => isUnreachable(thrown) || isReadOnly(thrown) || wasIdleTooLong(thrown);

  async function transaction<T>(work: (tx: TransactionQueries) => Promise<T>, isRead = () => false): Promise<T> {
    let last: Transaction<T> | undefined;
    const run = () => {
      last = undefined;
      return withConnection(
        async (connection, heard) => {
          // While it is reserved, it does not connect again by itself, which would leave the transaction.
          const reserved = await connection.reserve();
          last = createTransaction(reserved, begin, work, heard);
          return last.result().finally(() => reserved.release());
        },
        () => last?.abandon(),
      );
    };
    const isSafe = (thrown: unknown) => isConnectionLost(thrown) && (last?.isCommitting() !== true || isRead());
    return repeated(run, (thrown) => isUndone(thrown) || isSafe(thrown));
  }

  function one<T>(text: string, ask: (queries: Queries) => Promise<T>): Promise<T> {
    const isRead = () => READS.test(text);
    if (isPooled) return transaction(ask, isRead);
    return repeated(
      () => withConnection((connection) => ask(queriesOf((_, parameters) => send(connection, text, parameters)))),
      (thrown) => isUndone(thrown) || (isConnectionLost(thrown) && isRead()),
    );
  }

  return {
    all: (text, parameters) => one(text, (queries) => queries.all(text, parameters)),
    get: (text, parameters) => one(text, (queries) => queries.get(text, parameters)),
    run: (text, parameters) => one(text, (queries) => queries.run(text, parameters)),
    transaction: (work) => transaction(work),
    async close() {
      isClosed = true;
      await pool.close();
    },
  };
}
