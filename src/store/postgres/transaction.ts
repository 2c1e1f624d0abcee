import type { ReservedSQL } from "bun";
import { StoreError } from "../port/store-error.ts";
import { isConnectionLost, isConsequence, isRepeatable } from "./errors.ts";
import {
  type Parameter,
  pipeline,
  type Queries,
  type QueryResult,
  queriesOf,
  send,
  sendScript,
  type Writes,
} from "./queries.ts";

type Statement = readonly [text: string, parameters: readonly Parameter[]];

const COMMIT: Statement = ["COMMIT", []];
/** The driver sends every value of these types, `undefined` as NULL. It refuses symbols and some objects. */
const SENT_TYPES = new Set<string>(["string", "number", "boolean", "undefined"]);

/** One attempt to run a transaction. */
export interface Transaction<T> {
  /** Runs the transaction. @returns the work's result, after COMMIT. Then the connection is in no transaction. */
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
  /**
   * Runs the last statements and COMMIT in one round trip, so that locks are held for a shorter time. Nothing is sent
   * before `write` has given all statements.
   */
  commitWith(write: (last: Writes) => Promise<void>): Promise<void>;
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
  let isCommitted = false;
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
    script: async (text) => void (await ask(() => sendScript(connection, text))),
    commitWith: async (write) => commit(await statementsOf(write)),
  };

  /** Sends COMMIT right after the last statements. If a statement fails, the server answers COMMIT with ROLLBACK. */
  async function commit(last: readonly Statement[]): Promise<void> {
    // After a failed statement the server cannot commit, even if the work ignored the error.
    if (failures.length > 0) throw failures[0];
    isCommitting = true;
    const sent = [...last, COMMIT].map(([text, parameters]) => ask(() => send(connection, text, parameters)));
    const command = (await pipeline(sent)).at(-1)?.command;
    if (command !== "COMMIT") throw failures[0] ?? new Error(`the server answered COMMIT with ${command}`);
    isCommitted = true;
  }

  async function run(): Promise<T> {
    const began = ask(() => (begin === "BEGIN" ? send(connection, begin, []) : sendScript(connection, begin)));
    began.catch(() => undefined);
    const result = await work(queries);
    await began;
    if (!isCommitted) await commit([]);
    return result;
  }

  return {
    isCommitting: () => isCommitting,

    async result() {
      try {
        return await run();
      } catch (thrown) {
        const reason = reasonOf(thrown, failures);
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

/** Returns the reason of the failure: the work's error, or an earlier error that requires a retry. */
function reasonOf(thrown: unknown, failures: readonly unknown[]): unknown {
  const first = failures.find((failure) => !isConsequence(failure));
  const isFirst = isConsequence(thrown) || isRepeatable(first) || isConnectionLost(first);
  return isFirst && first !== undefined ? first : thrown;
}

/**
 * Collects the statements that `write` gives. Accepts only values that the driver sends. If the driver refused a value,
 * the driver would not send the value's statement. The server would still commit the other statements.
 * @throws Error for a value of another type than `Parameter` allows
 */
async function statementsOf(write: (last: Writes) => Promise<void>): Promise<Statement[]> {
  const statements: Statement[] = [];
  await write({
    async run(text, parameters = []) {
      const values = parameters.flatMap((each): unknown => (each instanceof Uint8Array ? null : each));
      const refused = values.find((value) => value !== null && !SENT_TYPES.has(typeof value));
      if (refused !== undefined) throw new Error(`a parameter has the type ${typeof refused}`);
      statements.push([text, parameters]);
    },
  });
  return statements;
}
