import type { ReservedSQL } from "bun";
import { StoreError } from "../port/store-error.ts";
import { isConnectionLost, isConsequence, isRepeatable } from "./errors.ts";
import { type Queries, type QueryResult, queriesOf, send, sendScript } from "./queries.ts";

/** One attempt to run a transaction. */
export interface Transaction<T> {
  /** Resolves to the result of the work after COMMIT. Then the connection is outside of any transaction. */
  result(): Promise<T>;
  /** Whether COMMIT may have reached the server. */
  isCommitting(): boolean;
  /** Refuses further statements. */
  abandon(): void;
}

/** Runs statements of a transaction. */
export interface TransactionQueries extends Queries {
  /** Runs statements without parameters, separated by semicolons. */
  script(text: string): Promise<void>;
}

/**
 * @param connection a connection reserved for this transaction
 * @param begin statements that begin the transaction. "BEGIN" alone is sent together with the first statements.
 * @param heard called at each answer
 */
export function createTransaction<T>(
  connection: ReservedSQL,
  begin: string,
  work: (tx: TransactionQueries) => Promise<T>,
  heard: () => void,
): Transaction<T> {
  let isOver = false;
  let isCommitting = false;
  const failures: unknown[] = [];

  async function ask(send: () => Promise<QueryResult>): Promise<QueryResult> {
    if (isOver) throw new StoreError("lost", new Error("the transaction is over"));
    try {
      return await send();
    } catch (thrown) {
      failures.push(thrown);
      throw thrown;
    } finally {
      heard();
    }
  }

  const queries: TransactionQueries = {
    ...queriesOf((text, parameters) => ask(() => send(connection, text, parameters))),
    async script(text) {
      await ask(() => sendScript(connection, text));
    },
  };

  async function run(): Promise<T> {
    const began = ask(() => (begin === "BEGIN" ? send(connection, begin, []) : sendScript(connection, begin)));
    began.catch(() => undefined);
    const result = await work(queries);
    await began;
    // After a failed statement the server cannot commit, even if the work ignored the error.
    if (failures.length > 0) throw failures[0];
    isCommitting = true;
    const { command } = await ask(() => send(connection, "COMMIT", []));
    if (command !== "COMMIT") throw failures[0] ?? new Error(`the server answered COMMIT with ${command}`);
    return result;
  }

  /** Returns the reason of the failure: the work's error, or an earlier error that requires a retry. */
  function reasonOf(thrown: unknown): unknown {
    const first = failures.find((failure) => !isConsequence(failure));
    const isFirst = isConsequence(thrown) || isRepeatable(first) || isConnectionLost(first);
    return isFirst && first !== undefined ? first : thrown;
  }

  return {
    isCommitting: () => isCommitting,

    async result() {
      try {
        return await run();
      } catch (thrown) {
        const reason = reasonOf(thrown);
        // If ROLLBACK fails, the connection is lost.
        if (!isOver && !isConnectionLost(reason)) await ask(() => send(connection, "ROLLBACK", []));
        throw reason;
      } finally {
        isOver = true;
      }
    },

    abandon() {
      isOver = true;
    },
  };
}
