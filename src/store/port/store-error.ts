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
  readonly isDiskFull: boolean;

  /** @param fullDisk describes the full disk, if a full disk is the cause */
  constructor(reason: StoreErrorReason, cause: unknown, fullDisk?: string) {
    super(fullDisk ?? messageOf(cause), { cause });
    this.reason = reason;
    this.isDiskFull = fullDisk !== undefined;
  }
}

/** Returns the log fields of a failure. Only failures of the database have `reason`. */
export function failureFields(thrown: unknown): { error: string; reason?: StoreErrorReason } {
  const error = messageOf(thrown);
  return thrown instanceof StoreError ? { error, reason: thrown.reason } : { error };
}
