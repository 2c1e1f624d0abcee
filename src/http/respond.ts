import { type ApiErrorCode, type ErrorCode, messageOf, SdsError } from "../domain/error.ts";
import type { Log } from "../lib/log.ts";
import { sentence } from "../lib/text.ts";
import { StoreError } from "../store/port/store-error.ts";
import type { ErrorBody } from "./answers.ts";
import { DATABASE_BUSY, refusals } from "./refusals.ts";

/** The HTTP status of each error code. This is the only such table. */
export const STATUS: Record<ErrorCode, number> = {
  bad_cursor: 400,
  bad_parameter: 400,
  bad_record: 400,
  invalid: 400,
  unauthorized: 401,
  plan_required: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  too_large: 413,
  rate_limited: 429,
  failed: 500,
  internal: 500,
  unavailable: 503,
};

/** The HTTP statuses of errors on our side. */
export const FAILURE_STATUSES = [...new Set(Object.values(STATUS))].filter((status) => status >= 500);

const COMMON_HEADERS = {
  "Content-Type": "application/json",
  "X-Content-Type-Options": "nosniff",
};
/** The Retry-After of a 503, in seconds. */
const RETRY_AFTER_SECONDS = "1";
const ERROR_HEADERS = { "Cache-Control": "no-store", Vary: "Authorization" };

/** Headers of a 503 for a body that was given up. The connection closes, because the rest of the body is not read. */
export const UNAVAILABLE_HEADERS = { "Retry-After": RETRY_AFTER_SECONDS, Connection: "close" };

/** Headers that are added for an error code. */
const HEADERS_OF: Partial<Record<ErrorCode, Record<string, string>>> = {
  unauthorized: { "WWW-Authenticate": "Bearer" },
  unavailable: UNAVAILABLE_HEADERS,
};

export function newRequestId(): string {
  return crypto.randomUUID();
}

/** Header fields by name. */
export type HeaderFields = Record<string, string>;

/** Responds with JSON. */
export function respond(
  status: number,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>> | null,
  headers: Record<string, string>,
  requestId = newRequestId(),
): Response {
  return new Response(body, { status, headers: { ...COMMON_HEADERS, ...headers, "X-Request-Id": requestId } });
}

/** Makes headers that several answers share, because making headers takes longer than the rest of a small answer. */
export function lastingHeaders(headers: Record<string, string>): Headers {
  return new Headers({ ...COMMON_HEADERS, ...headers });
}

/** Responds with JSON and headers from `lastingHeaders`. @param more headers only for this answer */
export function respondAgain(
  status: number,
  body: Uint8Array<ArrayBuffer> | null,
  headers: Headers,
  more: Record<string, string>,
): Response {
  const answer = new Response(body, { status, headers });
  for (const [name, value] of Object.entries(more)) answer.headers.set(name, value);
  answer.headers.set("X-Request-Id", newRequestId());
  return answer;
}

/** Makes the body of an error (docs/api.md, "Errors"). The message gets a capital letter and a full stop. */
export function apiError({ code, message, reason }: SdsError): ErrorBody {
  return { error: { code: code as ApiErrorCode, message: sentence(message), ...(reason !== undefined && { reason }) } };
}

function respondError(error: SdsError, headers: Record<string, string> = {}, requestId?: string): Response {
  return respond(STATUS[error.code], JSON.stringify(apiError(error)), { ...ERROR_HEADERS, ...headers }, requestId);
}

export function respondNotFound(): Response {
  return respondError(refusals.notFound());
}

/** Responds with 405. @param methods the methods that the path has */
export function respondMethodNotAllowed(methods: readonly string[]): Response {
  return respondError(refusals.methodNotAllowed(methods), { Allow: methods.join(", ") });
}

/** Responds to an error that a handler threw. Shows only refusals. Other errors are logged with the request id. */
export function respondToThrown(thrown: unknown, log: Log): Response {
  if (thrown instanceof SdsError && thrown.code !== "failed" && thrown.code !== "internal") {
    return respondError(thrown, HEADERS_OF[thrown.code]);
  }
  const requestId = newRequestId();
  if (isUnavailable(thrown)) {
    logUnavailable(thrown, requestId, log);
    return respondUnavailable(DATABASE_BUSY, requestId);
  }
  if (isAborted(thrown)) log.debug("a client went away", { requestId });
  else
    log.error("a request failed", {
      requestId,
      error: messageOf(thrown),
      stack: thrown instanceof Error ? thrown.stack : undefined,
    });
  return respondError(refusals.internal(), {}, requestId);
}

/** Whether the database could not serve this request. The same request can succeed later. */
export function isUnavailable(thrown: unknown): thrown is StoreError {
  return thrown instanceof StoreError && thrown.reason !== "conflict";
}

export function logUnavailable({ reason, message }: StoreError, requestId: string, log: Log): void {
  log[reason === "busy" ? "warn" : "error"]("the database could not serve a request", {
    requestId,
    reason,
    error: message,
  });
}

/** Responds with 503 and the time after which the client may try again. */
export function respondUnavailable(message: string, requestId?: string): Response {
  return respondError(new SdsError("unavailable", message), { "Retry-After": RETRY_AFTER_SECONDS }, requestId);
}

/** Responds with 429 and the time after which the next request is allowed. @param limits headers that tell the limit */
export function respondRateLimited(retryAfterS: number, limits: Record<string, string>): Response {
  return respondError(refusals.tooManyRequests(), { ...limits, "Retry-After": String(retryAfterS) });
}

/** Whether the client closed the connection before the request was complete. Then nobody reads the answer. */
function isAborted(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === "AbortError";
}
