import type { SQL } from "bun";
import { StoreError } from "../port/store-error.ts";

const CLOSE_SECONDS = 2;

interface PoolWaiter {
  resolve: (connection: SQL) => void;
  timer: Timer;
}

/**
 * Makes a pool of connections. Only one operation at a time uses a connection. Connections open on demand.
 * @param connect opens a pool of the driver with one connection. @param count the most connections
 */
export function createConnectionPool(connect: () => SQL, count: number) {
  /** Last in, first out, so that few connections open. */
  const idle: SQL[] = [];
  const open = new Set<SQL>();
  const waiting: PoolWaiter[] = [];
  let free = count;

  function next(): SQL {
    const connection = idle.pop() ?? connect();
    open.add(connection);
    return connection;
  }

  function wait(waitMs: number): Promise<SQL> {
    const { promise, resolve, reject } = Promise.withResolvers<SQL>();
    const giveUp = () => {
      waiting.splice(waiting.indexOf(mine), 1);
      reject(new StoreError("busy", new Error("all connections to the database are in use")));
    };
    const mine = { resolve, timer: setTimeout(giveUp, waitMs) };
    waiting.push(mine);
    return promise;
  }

  /** Closes a connection at once, with its running statement. */
  function discard(connection: SQL): void {
    if (open.delete(connection)) void close(connection, 0);
  }

  return {
    discard,

    /**
     * Takes a connection until `giveBack`. Callers are served in the order of their calls.
     * @throws StoreError `busy` if no connection is free in time
     */
    async take(waitMs: number): Promise<SQL> {
      if (free === 0) return wait(waitMs);
      free -= 1;
      return next();
    },

    /** Call this once after each `take`. */
    giveBack(connection: SQL): void {
      if (open.has(connection)) idle.push(connection);
      const first = waiting.shift();
      if (first === undefined) {
        free += 1;
        return;
      }
      clearTimeout(first.timer);
      first.resolve(next());
    },

    /** Closes idle connections. */
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

async function close(connection: SQL, seconds: number): Promise<void> {
  await connection.close({ timeout: seconds }).catch(() => undefined);
}
