/** The details of a refusal, without its message. */
interface ApiErrorDetails {
  status: number;
  code: string;
  reason: string | undefined;
  requestId: string | null;
  retryAfterMs: number | undefined;
}

/** Thrown if the server refuses a request, or still answers with an error at the deadline. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** The HTTP status. */
  readonly status: number;
  /** `error.code` of the answer, such as `unauthorized`; empty if the answer did not come from `sds`. */
  readonly code: string;
  /** `error.reason` of a refused cursor or checkpoint: `other_shop`, `other_resource`, `restored` or `not_issued`. */
  readonly reason: string | undefined;
  /** `X-Request-Id`, which the server logs. */
  readonly requestId: string | null;
  /** How long the server asks to wait before the next request, in milliseconds; undefined without Retry-After. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { status, code, reason, requestId, retryAfterMs }: ApiErrorDetails) {
    super(message);
    this.status = status;
    this.code = code;
    this.reason = reason;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Thrown if no complete response arrives before the deadline, for example because the connection fails. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}
