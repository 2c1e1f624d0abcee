import { codeOf, SdsError } from "../../domain/error.ts";
import { StoreError } from "../store-error.ts";

/** Turns SQLite's errors into errors of the port. */
function storeErrorOf(thrown: unknown): unknown {
  const code = codeOf(thrown);
  if (thrown instanceof SdsError || !code.startsWith("SQLITE_")) return thrown;
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) return new StoreError("busy", thrown);
  if (/^SQLITE_CONSTRAINT/.test(code)) return new StoreError("conflict", thrown);
  // Statements that SQLite cannot run are defects of ours, and shown as such.
  return /^SQLITE_(ERROR|MISUSE|RANGE|MISMATCH|TOOBIG)/.test(code) ? thrown : new StoreError("lost", thrown);
}

/** Wraps a part of the store, so that SQLite's errors leave it as StoreError. */
export function withStoreErrors<T extends object>(part: T): T {
  const wrapped = Object.entries(part).map(([name, method]) => [
    name,
    typeof method === "function" ? translated(method as Method) : method,
  ]);
  return Object.fromEntries(wrapped) as T;
}

type Method = (...args: unknown[]) => Promise<unknown>;

function translated(method: Method): Method {
  return async (...args) => {
    try {
      return await method(...args);
    } catch (thrown) {
      throw storeErrorOf(thrown);
    }
  };
}
