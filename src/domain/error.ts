/** The codes that an answer in JSON can have (docs/api.md, "Errors"). */
export const API_ERROR_CODES = [
  "bad_cursor",
  "bad_parameter",
  "bad_record",
  "unauthorized",
  "plan_required",
  "not_found",
  "method_not_allowed",
  "too_large",
  "rate_limited",
  "unavailable",
  "internal",
] as const;
export type ApiErrorCode = (typeof API_ERROR_CODES)[number];

/**
 * Every code that a refusal can have: those of the API, and those of commands and the settings page. HTTP statuses and
 * exit statuses are chosen by it.
 */
export type ErrorCode = ApiErrorCode | "invalid" | "conflict" | "failed";

/**
 * An error whose message may be shown to the user. Anything else that is thrown is a defect: the log gets the details,
 * the user sees `internal` without them.
 */
export class SdsError extends Error {
  override readonly name = "SdsError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The code that the system or SQLite gives an error; empty where it has none. */
export function codeOf(thrown: unknown): string {
  return typeof thrown === "object" && thrown !== null && "code" in thrown ? String(thrown.code) : "";
}

/** The message of anything thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
