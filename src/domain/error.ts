/** Every refusal the program can give, as one closed set. The HTTP statuses and exit statuses hang on it. */
export type ErrorCode =
  | "bad_cursor"
  | "bad_record"
  | "invalid"
  | "unauthorized"
  | "plan_required"
  | "not_found"
  | "method_not_allowed"
  | "conflict"
  | "too_large"
  | "unavailable"
  | "failed"
  | "internal";

/**
 * An error whose message may be shown to whoever asked. Anything else that is thrown is a defect:
 * it is logged with its detail and shown as `internal` without any.
 */
export class SdsError extends Error {
  override readonly name = "SdsError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** What the system, or SQLite, calls an error; empty where it has no name. */
export function codeOf(thrown: unknown): string {
  return typeof thrown === "object" && thrown !== null && "code" in thrown ? String(thrown.code) : "";
}

/** The words of anything thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
