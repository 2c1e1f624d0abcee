import type { SQL } from "bun";

/** Connections of which each is used by one operation at a time. They are made when they are needed. */
export interface ConnectionPool {
  /** A connection for its caller alone, until it is given back. */
  take(): SQL;
  giveBack(connection: SQL): void;
  /** Closes a connection at once, whatever is under way on it. */
  discard(connection: SQL): void;
  /** Closes all connections, those in use when they are given back. */
  discardAll(): void;
  /** Closes all connections. Waits for a moment for what is under way. */
  close(): Promise<void>;
}

const CLOSE_SECONDS = 2;

/** @param connect makes a pool of the driver with one connection, which is reused more often than the others */
export function createConnectionPool(connect: () => SQL): ConnectionPool {
  const idle: SQL[] = [];
  const inUse = new Set<SQL>();
  const discarded = new WeakSet<SQL>();

  const closeAtOnce = (connection: SQL) => void close(connection, 0);

  return {
    take() {
      const connection = idle.pop() ?? connect();
      inUse.add(connection);
      return connection;
    },

    giveBack(connection) {
      if (!inUse.delete(connection)) return;
      if (discarded.has(connection)) closeAtOnce(connection);
      else idle.push(connection);
    },

    discard(connection) {
      inUse.delete(connection);
      closeAtOnce(connection);
    },

    discardAll() {
      for (const connection of inUse) discarded.add(connection);
      for (const connection of idle.splice(0)) closeAtOnce(connection);
    },

    async close() {
      await Promise.all([...idle.splice(0), ...inUse].map((connection) => close(connection, CLOSE_SECONDS)));
    },
  };
}

async function close(connection: SQL, seconds: number): Promise<void> {
  await connection.close({ timeout: seconds }).catch(() => undefined);
}
