/**
 * A failed request to the platform. The reason says what may help:
 * - `unavailable`: the same request may work later.
 * - `unauthorized`: the operator has to act, because the connection is refused or an access scope is missing.
 * - `refused`: the request itself is wrong, and the same request gets the same answer.
 */
export class PlatformError extends Error {
  override readonly name = "PlatformError";
  readonly reason: "unavailable" | "unauthorized" | "refused";
  /** The HTTP status; null if there was no response. */
  readonly status: number | null = null;
  /** How long the platform says to wait before the next request. */
  readonly retryAfterMs: number | undefined;
  /** Whether only points are missing. Points come back, so the request waits instead of failing. */
  readonly isThrottled: boolean = false;
  /** Whether every request of the shop is refused until somebody acts. The message says what to do. */
  readonly needsMerchant: boolean = false;

  constructor(
    reason: PlatformError["reason"],
    message: string,
    details: Partial<Pick<PlatformError, "status" | "retryAfterMs" | "isThrottled" | "needsMerchant">> = {},
  ) {
    super(message);
    this.reason = reason;
    Object.assign(this, details);
  }
}

export function isPlatformError(thrown: unknown, reason: PlatformError["reason"]): thrown is PlatformError {
  return thrown instanceof PlatformError && thrown.reason === reason;
}
