import { messageOf } from "../../domain/error.ts";

/**
 * Why a database operation failed, whichever engine it is:
 * - `busy`: another process held a lock for longer than we wait. The same call can succeed later.
 * - `lost`: the database cannot be read or written, for instance because the disk is full or the file is damaged.
 * - `conflict`: the write breaks a constraint, for instance because the shop was removed in between.
 */
export type StoreErrorReason = "busy" | "lost" | "conflict";

/** A failure of the database. Nothing of the operation was kept. The engine's own error is the `cause`. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly reason: StoreErrorReason;

  constructor(reason: StoreErrorReason, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.reason = reason;
  }
}

/** What a log says of a failure. `reason` is there for failures of the database. */
export function failureFields(thrown: unknown): { error: string; reason?: StoreErrorReason } {
  const error = messageOf(thrown);
  return thrown instanceof StoreError ? { error, reason: thrown.reason } : { error };
}
