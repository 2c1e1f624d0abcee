/** Error codes in JSON answers (docs/api.md, "Errors"). */
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
 * Why a cursor or checkpoint is refused (docs/api.md, "Errors"). Only `restored` means that the reader's copy is wrong.
 */
export const CURSOR_PROBLEMS = ["other_shop", "other_resource", "restored", "not_issued"] as const;
export type CursorProblem = (typeof CURSOR_PROBLEMS)[number];

/** Codes of all refusals. The code decides the HTTP status and the exit status. */
export type ErrorCode = ApiErrorCode | "invalid" | "conflict" | "failed";

/** An error with a message for users. Any other error is a defect: users see `internal`. */
export class SdsError extends Error {
  override readonly name = "SdsError";
  readonly code: ErrorCode;
  /** Set only for `bad_cursor`. */
  readonly reason: CursorProblem | undefined;

  constructor(code: ErrorCode, message: string, options: ErrorOptions & { reason?: CursorProblem } = {}) {
    super(message, options);
    this.code = code;
    this.reason = options.reason;
  }
}

/** Makes the error for wrong input. `cause` is the value that was caught. */
export function invalid(message: string, cause?: unknown): SdsError {
  return new SdsError("invalid", message, { cause });
}

/** Returns the code of a system error or a SQLite error; an empty string if there is no code. */
export function codeOf(thrown: unknown): string {
  return typeof thrown === "object" && thrown !== null && "code" in thrown ? String(thrown.code) : "";
}

/** Whether the error means that this user may not use a file. */
export function isForbidden(thrown: unknown): boolean {
  return ["EACCES", "EPERM"].includes(codeOf(thrown));
}

const NO_RIGHT = (it: string) => `this user may not use ${it}: run this as its owner, or change its mode`;
const FULL = () => "the disk is full: free some space";

/** Texts for users. They replace messages of the system and of Bun. `it` is the path, or "it" if there is no path. */
const SYSTEM_MESSAGES: Record<string, (it: string) => string> = {
  EACCES: NO_RIGHT,
  EPERM: NO_RIGHT,
  ENOENT: (it) => `${it} does not exist: check the path`,
  ENOTDIR: (it) => `a folder in the path of ${it} is a file: check the path`,
  EISDIR: (it) => `${it} is a folder: name a file`,
  ERR_ENCODING_INVALID_ENCODED_DATA: (it) => `${it} is not UTF-8 text`,
  EROFS: (it) => `the disk of ${it} can only be read: choose another one`,
  ENOSPC: FULL,
  EDQUOT: FULL,
  EADDRINUSE: () => "another program uses the port: stop it, or choose another one with --port",
  EADDRNOTAVAIL: () => "this machine has no such address: use one of its own, such as 127.0.0.1",
  ECONNREFUSED: () => "nothing listens there: start the server, or correct the address",
  ECONNRESET: () => "the other side closed the connection: try again",
  ENOTFOUND: () => "there is no machine of this name: correct the address",
  EPROTO: () => "the other side speaks no TLS there: correct the address",
  SQLITE_CANTOPEN: () => "its file cannot be opened: run this as its owner, and check the limit of open files",
  SQLITE_READONLY: () => "its file cannot be written: run this as its owner, and check its mode and its disk",
};

/** Returns the message of any thrown value, for users. */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const { path } = thrown as { path?: unknown };
  return SYSTEM_MESSAGES[codeOf(thrown)]?.(typeof path === "string" ? path : "it") ?? thrown.message;
}

/**
 * Error codes of a server whose address is right. Any other code can come from the look-up of the host's name: Bun then
 * gives the last one, such as EINVAL or ENOENT. An error without a code comes from elsewhere.
 */
const RIGHT_ADDRESS = ["EACCES", "EPERM", "EADDRINUSE", "EMFILE", "ENFILE", "ENOBUFS", "ENOMEM"];

/**
 * Returns the error for a server that cannot listen. The message says what to do.
 * @param setting the flag or setting with which the user chooses the port
 */
export function cannotListen(host: string, port: number, cause: unknown, setting = "--port"): SdsError {
  const code = ["", ...RIGHT_ADDRESS].includes(codeOf(cause)) ? codeOf(cause) : "EADDRNOTAVAIL";
  const reason =
    code === "EACCES"
      ? "this user may not use ports below 1024: choose another one with --port, and put a proxy in front"
      : messageOf(Object.assign(new Error(messageOf(cause)), { code }));
  const message = `cannot listen on ${host} port ${port}: ${reason.replace("--port", setting)}`;
  return new SdsError("failed", message, { cause });
}
