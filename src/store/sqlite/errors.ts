import { codeOf, SdsError } from "../../domain/error.ts";
import type { Awaitable } from "../../lib/awaitable.ts";
import { StoreError } from "../port/store-error.ts";
import { isBusy, type LockWait } from "./lock-wait.ts";

/** Turns SQLite's errors into errors of the port. */
function storeErrorOf(thrown: unknown): unknown {
  const code = codeOf(thrown);
  if (thrown instanceof SdsError || !code.startsWith("SQLITE_")) return thrown;
  if (isBusy(thrown)) return new StoreError("busy", thrown);
  if (/^SQLITE_CONSTRAINT/.test(code)) return new StoreError("conflict", thrown);
  // Statements that SQLite cannot run are defects of ours, and shown as such.
  return /^SQLITE_(ERROR|MISUSE|RANGE|MISMATCH|TOOBIG)/.test(code) ? thrown : new StoreError("lost", thrown);
}

/** What helps after a failure, so that the operation can be repeated. */
interface Remedies {
  lockWait: LockWait;
  /** Makes room on a full disk. @returns whether it could */
  emptyLog: () => boolean;
}

/** Wraps a part of the store, so that it repeats what can succeed now, and SQLite's errors leave it as StoreError. */
export function withStoreErrors<T extends object>(part: T, remedies: Remedies): T {
  const wrapped = Object.entries(part).map(([name, method]) => [
    name,
    typeof method === "function" ? translated(method as Method, remedies) : method,
  ]);
  return Object.fromEntries(wrapped) as T;
}

type Method = (...args: unknown[]) => Awaitable<unknown>;

/** A method that returns a value returns it at once. One that failed is repeated later, and gives a promise. */
function translated(method: Method, { lockWait, emptyLog }: Remedies): Method {
  async function repeat(thrown: unknown, args: unknown[]): Promise<unknown> {
    try {
      if (isBusy(thrown)) return await lockWait.repeat(async () => method(...args), thrown);
      if (codeOf(thrown) === "SQLITE_FULL" && emptyLog()) return await method(...args);
    } catch (again) {
      throw storeErrorOf(again);
    }
    throw storeErrorOf(thrown);
  }

  return (...args) => {
    try {
      const result = method(...args);
      return result instanceof Promise ? result.catch((thrown: unknown) => repeat(thrown, args)) : result;
    } catch (thrown) {
      return repeat(thrown, args);
    }
  };
}
