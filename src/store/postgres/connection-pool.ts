import type { SQL } from "bun";
import { StoreError } from "../port/store-error.ts";

/** Connections of which each is used by one operation at a time. They are made when they are needed. */
export interface ConnectionPool {
  /**
   * A connection for its caller alone, until it is given back. Who waits is served in the order of the calls.
   * @throws StoreError `busy` if none is free within the time
   */
  take(waitMs: number): Promise<SQL>;
  /** Must follow each `take`, once. */
  giveBack(connection: SQL): void;
  /** Closes a connection at once, whatever is under way on it. */
  discard(connection: SQL): void;
  /** Closes the connections that nobody uses. */
  discardIdle(): void;
  /** Closes all connections. Waits for a moment for what is under way. */
  close(): Promise<void>;
}

const CLOSE_SECONDS = 2;

interface Waiting {
  resolve: (connection: SQL) => void;
  timer: Timer;
}

/** @param connect makes a pool of the driver with one connection. @param count of connections at most */
export function createConnectionPool(connect: () => SQL, count: number): ConnectionPool {
  /** The last one is used first, so that no more are made than are needed. */
  const idle: SQL[] = [];
  const open = new Set<SQL>();
  const waiting: Waiting[] = [];
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

  function discard(connection: SQL): void {
    if (open.delete(connection)) void close(connection, 0);
  }

  return {
    discard,

    async take(waitMs) {
      if (free === 0) return wait(waitMs);
      free -= 1;
      return next();
    },

    giveBack(connection) {
      if (open.has(connection)) idle.push(connection);
      const first = waiting.shift();
      if (first === undefined) {
        free += 1;
        return;
      }
      clearTimeout(first.timer);
      first.resolve(next());
    },

    discardIdle() {
      for (const connection of idle.splice(0)) discard(connection);
    },

    async close() {
      idle.splice(0);
      await Promise.all([...open].map((connection) => close(connection, CLOSE_SECONDS)));
    },
  };
}

async function close(connection: SQL, seconds: number): Promise<void> {
  await connection.close({ timeout: seconds }).catch(() => undefined);
}
