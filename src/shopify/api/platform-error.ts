/**
 * Why the platform could not be asked: it may pass (`unavailable`), it waits for the operator (`unauthorized`: token refused, access not granted),
 * or it is our question (`refused`: asking again gives the same answer).
 */
export class PlatformError extends Error {
  override readonly name = "PlatformError";
  readonly reason: "unavailable" | "unauthorized" | "refused";
  /** Of the answer, if there was one. */
  readonly status: number | null;
  /** The platform's own words of when to ask again, milliseconds. */
  readonly retryAfter: number | undefined;

  constructor(
    reason: PlatformError["reason"],
    message: string,
    { status = null, retryAfter }: { status?: number | null; retryAfter?: number | undefined } = {},
  ) {
    super(message);
    this.reason = reason;
    this.status = status;
    this.retryAfter = retryAfter;
  }
}
