import { codeOf, SdsError } from "../../domain/error.ts";
import type { Awaitable } from "../../lib/waits.ts";
import { describeFullDisk } from "../files/disk-space.ts";
import { StoreError } from "../port/store-error.ts";
import { isBusy, type LockWait } from "./lock-wait.ts";

/** Converts SQLite's errors to errors of the port. */
function storeErrorOf(thrown: unknown, folder: string): unknown {
  const code = codeOf(thrown);
  if (thrown instanceof SdsError || !code.startsWith("SQLITE_")) return thrown;
  if (isBusy(thrown)) return new StoreError("busy", thrown);
  if (/^SQLITE_CONSTRAINT/.test(code)) return new StoreError("conflict", thrown);
  // These errors are defects of our code, and are returned unchanged.
  if (/^SQLITE_(ERROR|MISUSE|RANGE|MISMATCH|TOOBIG)/.test(code)) return thrown;
  return new StoreError("lost", thrown, describeFullDisk(thrown, folder));
}

/** Remedies for failures. After a remedy, the operation is retried. */
interface Remedies {
  lockWait: LockWait;
  /** Frees space on a full disk. @returns whether it freed any space */
  truncateLog: () => boolean;
  /** The database's folder, for messages. */
  folder: string;
}

/** Wraps the methods of a part of the store. They retry after a remedy, and throw SQLite's errors as StoreError. */
export function withStoreErrors<T extends object>(part: T, remedies: Remedies): T {
  const wrapped = Object.entries(part).map(([name, method]) => [
    name,
    typeof method === "function" ? translated(method as StoreMethod, remedies) : method,
  ]);
  return Object.fromEntries(wrapped) as T;
}

/** Wraps each of several parts as `withStoreErrors` does. */
export function withStoreErrorsInParts<T extends Record<string, object>>(parts: T, remedies: Remedies): T {
  const wrapped = Object.entries(parts).map(([name, part]) => [name, withStoreErrors(part, remedies)]);
  return Object.fromEntries(wrapped) as T;
}

type StoreMethod = (...args: unknown[]) => Awaitable<unknown>;

/**
 * Wraps a method. If the method succeeds, the wrapper returns its result. If the method fails, the wrapper returns a
 * promise, because the retry comes later.
 */
function translated(method: StoreMethod, { lockWait, truncateLog, folder }: Remedies): StoreMethod {
  async function repeat(thrown: unknown, args: unknown[]): Promise<unknown> {
    try {
      if (isBusy(thrown)) return await lockWait.repeat(async () => method(...args), thrown);
      if (codeOf(thrown) === "SQLITE_FULL" && truncateLog()) return await method(...args);
    } catch (again) {
      throw storeErrorOf(again, folder);
    }
    throw storeErrorOf(thrown, folder);
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
