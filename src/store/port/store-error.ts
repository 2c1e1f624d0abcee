import { messageOf } from "../../domain/error.ts";

/**
 * Why a database operation failed. Both engines use the same reasons:
 * - `busy`: another process held a lock for too long. The call can succeed later.
 * - `lost`: the database cannot be read or written, for instance because of a full disk or a damaged file.
 * - `conflict`: the write breaks a constraint, for instance because the shop was removed in the meantime.
 */
export type StoreErrorReason = "busy" | "lost" | "conflict";

/** A failure of the database. The operation changed nothing. `cause` is the engine's error. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly reason: StoreErrorReason;

  constructor(reason: StoreErrorReason, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.reason = reason;
  }
}

/** Returns the log fields of a failure. Only failures of the database have `reason`. */
export function failureFields(thrown: unknown): { error: string; reason?: StoreErrorReason } {
  const error = messageOf(thrown);
  return thrown instanceof StoreError ? { error, reason: thrown.reason } : { error };
}
