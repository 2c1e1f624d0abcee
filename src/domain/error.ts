/** Codes of answers in JSON (docs/api.md, "Errors"). */
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

/** Why a cursor or a checkpoint is refused (docs/api.md, "Errors"). Only `restored` makes a copy of the rows wrong. */
export const CURSOR_PROBLEMS = ["other_shop", "other_resource", "restored", "not_issued"] as const;
export type CursorProblem = (typeof CURSOR_PROBLEMS)[number];

/** Codes of all refusals. The code decides the HTTP status and the exit status. */
export type ErrorCode = ApiErrorCode | "invalid" | "conflict" | "failed";

/** An error with a message for users. Any other error is a defect: users see `internal`. */
export class SdsError extends Error {
  override readonly name = "SdsError";
  readonly code: ErrorCode;
  /** Only of `bad_cursor`. */
  readonly reason: CursorProblem | undefined;

  constructor(code: ErrorCode, message: string, options: ErrorOptions & { reason?: CursorProblem } = {}) {
    super(message, options);
    this.code = code;
    this.reason = options.reason;
  }
}

/** Returns the error of wrong input; `cause` is the thrown value behind it. */
export function invalid(message: string, cause?: unknown): SdsError {
  return new SdsError("invalid", message, { cause });
}

/** Returns the code of an error of the system or SQLite; empty without a code. */
export function codeOf(thrown: unknown): string {
  return typeof thrown === "object" && thrown !== null && "code" in thrown ? String(thrown.code) : "";
}

/** Returns the message of any thrown value. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
