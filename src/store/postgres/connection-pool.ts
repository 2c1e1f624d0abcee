import type { SQL } from "bun";
import { StoreError } from "../port/store-error.ts";

const CLOSE_SECONDS = 2;

/** A driver pool of one connection. */
export interface PooledConnection {
  sql: SQL;
  /** Name of the connection at the server. */
  name: string;
}

interface PoolWaiter {
  isWrite: boolean;
  resolve: (connection: PooledConnection) => void;
  reject: (reason: StoreError) => void;
}

/** Number of connections that only reads may use. */
const ONLY_FOR_READS = 3;

/**
 * Makes a pool of connections. Only one operation at a time uses a connection. Connections open on demand. Writes may
 * use fewer connections than reads, so that reads continue while writes wait.
 * @param count maximum number of connections
 */
export function createConnectionPool(connect: () => PooledConnection, count: number) {
  /** The connection that was given back last is taken first. */
  const idle: PooledConnection[] = [];
  const open = new Set<PooledConnection>();
  const waiting: PoolWaiter[] = [];
  let free = count;
  let freeForWrites = count > 2 * ONLY_FOR_READS ? count - ONLY_FOR_READS : count;

  const isFree = (isWrite: boolean) => free > 0 && (!isWrite || freeForWrites > 0);

  function next(isWrite: boolean): PooledConnection {
    free -= 1;
    if (isWrite) freeForWrites -= 1;
    const connection = idle.pop() ?? connect();
    open.add(connection);
    return connection;
  }

  /** Closes a connection at once, even while it runs a statement. */
  function discard(connection: PooledConnection): void {
    if (open.delete(connection)) void close(connection, 0);
  }

  return {
    discard,

    /**
     * Takes a connection until `giveBack`. Reads are served in the order of their calls, and so are writes. A read may
     * overtake a waiting write.
     * @throws StoreError `busy` if no connection is free in time
     */
    async take(waitMs: number, isWrite: boolean): Promise<PooledConnection> {
      return isFree(isWrite) ? next(isWrite) : waitIn(waiting, waitMs, isWrite);
    },

    /** Call this once after each `take`. */
    giveBack(connection: PooledConnection, isWrite: boolean): void {
      if (open.has(connection)) idle.push(connection);
      free += 1;
      if (isWrite) freeForWrites += 1;
      const first = waiting.findIndex((waiter) => isFree(waiter.isWrite));
      for (const waiter of first === -1 ? [] : waiting.splice(first, 1)) waiter.resolve(next(waiter.isWrite));
    },

    /** Refuses all writes that wait for a connection. */
    refuseWaitingWrites(reason: StoreError): void {
      for (const waiter of waiting.filter(({ isWrite }) => isWrite)) {
        waiting.splice(waiting.indexOf(waiter), 1);
        waiter.reject(reason);
      }
    },

    discardIdle(): void {
      for (const connection of idle.splice(0)) discard(connection);
    },

    /** Closes all connections, after a short wait for running statements. */
    async close(): Promise<void> {
      idle.splice(0);
      await Promise.all([...open].map((connection) => close(connection, CLOSE_SECONDS)));
    },
  };
}

function waitIn(waiting: PoolWaiter[], waitMs: number, isWrite: boolean): Promise<PooledConnection> {
  const { promise, resolve, reject } = Promise.withResolvers<PooledConnection>();
  const waiter = { isWrite, resolve, reject };
  waiting.push(waiter);
  const timer = setTimeout(() => {
    waiting.splice(waiting.indexOf(waiter), 1);
    reject(new StoreError("busy", new Error("all connections to the database are in use")));
  }, waitMs);
  return promise.finally(() => clearTimeout(timer));
}

async function close({ sql }: PooledConnection, seconds: number): Promise<void> {
  await sql.close({ timeout: seconds }).catch(() => undefined);
}
