import { codeOf, SdsError } from "../../domain/error.ts";
import { StoreError } from "../store-error.ts";
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

/** Wraps a part of the store, so that it waits for locks, and SQLite's errors leave it as StoreError. */
export function withStoreErrors<T extends object>(part: T, lockWait: LockWait): T {
  const wrapped = Object.entries(part).map(([name, method]) => [
    name,
    typeof method === "function" ? translated(method as Method, lockWait) : method,
  ]);
  return Object.fromEntries(wrapped) as T;
}

type Method = (...args: unknown[]) => Promise<unknown>;

function translated(method: Method, { repeat }: LockWait): Method {
  return async (...args) => {
    try {
      return await method(...args);
    } catch (thrown) {
      if (!isBusy(thrown)) throw storeErrorOf(thrown);
      return await repeat(() => method(...args), thrown).catch((again: unknown) => {
        throw storeErrorOf(again);
      });
    }
  };
}
