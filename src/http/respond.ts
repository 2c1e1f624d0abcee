import { type ErrorCode, messageOf, SdsError } from "../domain/error.ts";
import { RESOURCES } from "../domain/resources.ts";
import { sentence } from "../lib/text.ts";
import type { Log } from "../log.ts";
import { StoreError } from "../store/store-error.ts";

/** The one table from error code to HTTP status. */
const STATUS: Record<ErrorCode, number> = {
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

const COMMON_HEADERS = {
  "Content-Type": "application/json",
  "X-Content-Type-Options": "nosniff",
};
/** What a 503 tells the client to wait, in seconds. */
const RETRY_AFTER_SECONDS = "1";
const ERROR_HEADERS = { "Cache-Control": "no-store", Vary: "Authorization" };

/** Of a 503 for a body that was given up: the rest of it is not read. */
export const UNAVAILABLE_HEADERS = { "Retry-After": RETRY_AFTER_SECONDS, Connection: "close" };

/** What a thrown refusal adds. */
const HEADERS_OF: Partial<Record<ErrorCode, Record<string, string>>> = {
  unauthorized: { "WWW-Authenticate": "Bearer" },
  unavailable: UNAVAILABLE_HEADERS,
};

export function newRequestId(): string {
  return crypto.randomUUID();
}

/** A JSON answer. */
export function respond(
  status: number,
  body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array<ArrayBuffer>> | null,
  headers: Record<string, string>,
  requestId = newRequestId(),
): Response {
  return new Response(body, { status, headers: { ...COMMON_HEADERS, ...headers, "X-Request-Id": requestId } });
}

/** Every error has the same form (docs/api.md, "Errors"). The message gets a capital letter and a full stop. */
function respondError({ code, message }: SdsError, headers: Record<string, string> = {}, requestId?: string): Response {
  return respond(
    STATUS[code],
    JSON.stringify({ error: { code, message: sentence(message) } }),
    { ...ERROR_HEADERS, ...headers },
    requestId,
  );
}

export function respondNotFound(): Response {
  const lists = RESOURCES.map((resource) => `/api/v1/${resource}`).join(", ");
  return respondError(new SdsError("not_found", `There is nothing here. The API has ${lists}.`));
}

/** @param methods the methods that the path has */
export function respondMethodNotAllowed(methods: readonly string[]): Response {
  const allow = methods.join(", ");
  const verb = methods.length === 1 ? "is" : "are";
  return respondError(new SdsError("method_not_allowed", `Only ${allow} ${verb} allowed here.`), { Allow: allow });
}

/**
 * The answer to what a handler threw. An SdsError is shown as it is. Anything else is logged under the answer's request
 * id and shown without detail.
 */
export function respondToThrown(thrown: unknown, log: Log): Response {
  if (thrown instanceof SdsError && thrown.code !== "failed" && thrown.code !== "internal") {
    return respondError(thrown, HEADERS_OF[thrown.code]);
  }
  const requestId = newRequestId();
  if (isUnavailable(thrown)) {
    logUnavailable(thrown, requestId, log);
    return respondUnavailable("The database is busy or cannot be used. It is safe to try again.", requestId);
  }
  if (isAborted(thrown)) log.debug("a client went away", { requestId });
  else
    log.error("a request failed", {
      requestId,
      error: messageOf(thrown),
      stack: thrown instanceof Error ? thrown.stack : undefined,
    });
  return respondError(
    new SdsError("internal", "Something went wrong on our side. It is safe to try again."),
    {},
    requestId,
  );
}

/** Whether the database could not serve the request, and the same request can succeed later. */
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

/** 503 with the time after which it makes sense to try again. */
export function respondUnavailable(message: string, requestId?: string): Response {
  return respondError(new SdsError("unavailable", message), { "Retry-After": RETRY_AFTER_SECONDS }, requestId);
}

/** 429 with the time after which the next request is allowed. @param limits headers that tell the limit */
export function respondRateLimited(retryAfterS: number, limits: Record<string, string>): Response {
  return respondError(new SdsError("rate_limited", "This API key makes too many requests. Slow down, and try again."), {
    ...limits,
    "Retry-After": String(retryAfterS),
  });
}

/** The client closed the connection before its body was complete: nobody reads the answer. */
function isAborted(thrown: unknown): boolean {
  return thrown instanceof Error && thrown.name === "AbortError";
}
