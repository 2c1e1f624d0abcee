import { messageOf, SdsError } from "../../domain/error.ts";
import { nameOf, type ServerAddress } from "./address.ts";
import { connect } from "./connect.ts";
import type { Parameter } from "./database.ts";
import { isConnectionLost, sqlState } from "./errors.ts";

/** A transaction on its own connection. The deadline of operations does not apply to the transaction. */
export interface LongTransaction {
  all<T>(text: string, parameters?: readonly (Parameter | readonly unknown[])[]): Promise<T[]>;
  commit(): Promise<void>;
  /** Closes the connection. Rolls the transaction back if `commit` was not called. */
  close(): Promise<void>;
}

const STATEMENT_MS = 600_000;
const CONNECT_MS = 20_000;
/** The server's limits: for a statement, for a client that sends nothing, and for the wait for a lock. */
const SETTINGS = {
  statement_timeout: `${STATEMENT_MS}ms`,
  idle_in_transaction_session_timeout: `${STATEMENT_MS}ms`,
  lock_timeout: "5s",
  jit: "off",
};

/**
 * Begins a transaction.
 * @param mode such as ISOLATION LEVEL REPEATABLE READ
 * @throws SdsError `failed`, also from the transaction's statements
 */
export async function beginLong(address: ServerAddress, mode: string): Promise<LongTransaction> {
  const name = nameOf(address);
  // With `isPooled` the connection has no limits. The transaction sets its own limits.
  const sql = connect({ address, deadlineMs: CONNECT_MS, isPooled: true });
  const close = () => sql.close({ timeout: 0 }).catch(() => undefined);

  /** Limits the wait for a statement. A network may drop packets silently, so the statement could hang forever. */
  async function guarded<T>(statement: () => Promise<T>): Promise<T> {
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(new Error("it does not answer")), STATEMENT_MS + 10_000);
    try {
      return await Promise.race([statement(), late.promise]);
    } catch (thrown) {
      throw copyError(name, thrown);
    } finally {
      clearTimeout(timer);
    }
  }

  try {
    // A connection that is not reserved would silently reconnect outside of the transaction.
    const connection = await guarded(() => sql.reserve());
    const run = (text: string, parameters: readonly unknown[] = []) =>
      guarded<unknown[]>(() => connection.unsafe(text, [...parameters]) as Promise<unknown[]>);
    await run(`BEGIN ${mode}`);
    for (const [setting, value] of Object.entries(SETTINGS)) await run(`SET LOCAL ${setting} = '${value}'`);
    return {
      all: async <T>(text: string, parameters?: readonly unknown[]) => Array.from(await run(text, parameters)) as T[],
      async commit() {
        await run("COMMIT");
      },
      close,
    };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

function copyError(name: string, thrown: unknown): SdsError {
  if (thrown instanceof SdsError) return thrown;
  if (sqlState(thrown) === "55P03") return serverInUse(name, thrown);
  const how = isConnectionLost(thrown) ? "the connection was lost" : "it cannot be used";
  return new SdsError("failed", `${name}: ${how}: ${messageOf(thrown)}`, { cause: thrown });
}

export function serverInUse(name: string, cause?: unknown): SdsError {
  return new SdsError(
    "failed",
    `${name} is in use: stop every \`sds serve\`, wait for other commands to end, and run this again; ` +
      "nothing was changed",
    { cause },
  );
}
