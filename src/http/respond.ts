import type { ErrorCode, SdsError } from "../domain/error.ts";

/** The one table from error code to HTTP status. */
const STATUS: Record<ErrorCode, number> = {
  bad_cursor: 400,
  bad_record: 400,
  invalid: 400,
  unauthorized: 401,
  plan_required: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  too_large: 413,
  failed: 500,
  internal: 500,
  unavailable: 503,
};

const COMMON = {
  "Content-Type": "application/json",
  "X-Content-Type-Options": "nosniff",
};

export function newRequestId(): string {
  return crypto.randomUUID();
}

export function respond(status: number, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string>, requestId = newRequestId()): Response {
  return new Response(body, { status, headers: { ...COMMON, ...headers, "X-Request-Id": requestId } });
}

/** Every error looks alike: service.md "Errors", contract.md 1.11. */
export function respondError(error: SdsError, headers: Record<string, string> = {}, requestId?: string): Response {
  const { code, message } = error;
  return respond(STATUS[code], JSON.stringify({ error: { code, message } }), { "Cache-Control": "no-store", Vary: "Authorization", ...headers }, requestId);
}
