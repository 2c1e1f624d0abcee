/** What the server says beside an error's message. */
interface ApiErrorDetails {
  status: number;
  code: string;
  requestId: string | null;
  retryAfterMs: number | undefined;
}

/** The server refused a request, or it answered with an error until the deadline. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** The HTTP status. */
  readonly status: number;
  /** `error.code` of the answer, such as `unauthorized`; empty if the answer was not one of `sds`. */
  readonly code: string;
  /** `X-Request-Id`: the log of the server has it. */
  readonly requestId: string | null;
  /** What the server asks to wait before the next request, in milliseconds; undefined if it does not say. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { status, code, requestId, retryAfterMs }: ApiErrorDetails) {
    super(message);
    this.status = status;
    this.code = code;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
  }
}

/** No whole answer came before the deadline: no connection, a lost connection, or no answer in time. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}
