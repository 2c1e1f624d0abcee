import type { ReservedSQL } from "bun";
import { StoreError } from "../port/store-error.ts";
import { isConnectionLost, isConsequence, isRepeatable } from "./errors.ts";
import { type Answer, type Queries, queriesOf, send, sendScript } from "./queries.ts";

/** One run of a transaction. */
export interface Transaction<T> {
  /** Ends with what the work returned, when that is committed. Afterwards the connection is in no transaction. */
  result(): Promise<T>;
  /** Whether the request to commit may have reached the server. */
  isCommitting(): boolean;
  /** Sends nothing more. */
  abandon(): void;
}

/** The queries of a transaction. */
export interface TransactionQueries extends Queries {
  /** Runs statements without parameters, with semicolons between them. */
  script(text: string): Promise<void>;
}

/**
 * @param connection for this transaction alone
 * @param begin what begins it: "BEGIN" alone is sent together with the first statements
 * @param heard is called at each answer
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

  async function ask(send: () => Promise<Answer>): Promise<Answer> {
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
    // After a failure the server commits nothing, also if the work went on as if nothing had happened.
    if (failures.length > 0) throw failures[0];
    isCommitting = true;
    const { command } = await ask(() => send(connection, "COMMIT", []));
    if (command !== "COMMIT") throw failures[0] ?? new Error(`the server answered COMMIT with ${command}`);
    return result;
  }

  /** What the work makes of an error counts, unless the transaction has to be run again. */
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
        // Where this fails, the connection is lost.
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
