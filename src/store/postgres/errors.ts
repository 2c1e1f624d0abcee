import { codeOf, messageOf, SdsError } from "../../domain/error.ts";
import { StoreError } from "../port/store-error.ts";

/** Returns the SQLSTATE, which the driver calls `errno`; "" for other errors. */
export function sqlState(thrown: unknown): string {
  const { errno } = (thrown ?? {}) as { errno?: unknown };
  return typeof errno === "string" && /^[0-9A-Z]{5}$/.test(errno) ? errno : "";
}

/** Whether a statement failed only because an earlier statement of its transaction failed. */
export function isConsequence(thrown: unknown): boolean {
  return sqlState(thrown) === "25P02";
}

/** Whether the transaction conflicted with another one, so that a retry can succeed. */
export function isRepeatable(thrown: unknown): boolean {
  return ["40001", "40P01"].includes(sqlState(thrown));
}

/** Error codes for an untrusted certificate, or a server without TLS. */
const TLS_CODES = /^(ERR_POSTGRES_TLS_|ERR_TLS_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/;
const SIGN_IN_CODES = /^ERR_POSTGRES_(AUTH|SASL|CHANNEL_BINDING|UNKNOWN_AUTH|UNSUPPORTED_AUTH|INVALID_SERVER_)/;
const NETWORK_CODES = /^(ERR_POSTGRES_(CONNECTION_|(IDLE|LIFETIME)_TIMEOUT|(INVALID|UNEXPECTED)_MESSAGE)|ECONN|EPIPE)/;

/**
 * Whether the connection failed before anything was sent. Reasons are: no listener, no answer, a server that starts or
 * stops, too many connections.
 */
export function isUnreachable(thrown: unknown): boolean {
  const state = sqlState(thrown);
  if (state !== "") return /^(57P03|53300|08001|08004)$/.test(state);
  return /^ERR_POSTGRES_CONNECTION_(REFUSED|TIMEOUT|FAILED)$/.test(codeOf(thrown));
}

/** Whether the server is read-only, such as the old primary after a failover. */
export function isReadOnly(thrown: unknown): boolean {
  return sqlState(thrown) === "25006";
}

/** Whether the server ended the transaction because it was idle. Then the server did not run later statements. */
export function wasIdleTooLong(thrown: unknown): boolean {
  return sqlState(thrown) === "25P03";
}

/** Whether the connection is lost, because of the network, a stopping server (57P01, 57P02) or a terminated session. */
export function isConnectionLost(thrown: unknown): boolean {
  if (isUnreachable(thrown)) return true;
  const state = sqlState(thrown);
  return state === "" ? NETWORK_CODES.test(codeOf(thrown)) : /^(08|57P0|25P03)/.test(state);
}

/** Whether the server refuses the login, lacks the database, or has no TLS with a trusted certificate. */
export function isRefused(thrown: unknown): boolean {
  const state = sqlState(thrown);
  if (state !== "") return /^(28|3D000)/.test(state);
  return TLS_CODES.test(codeOf(thrown)) || SIGN_IN_CODES.test(codeOf(thrown));
}

export function isTlsRefusal(thrown: unknown): boolean {
  return TLS_CODES.test(codeOf(thrown));
}

/** Converts the driver's errors to errors of the port. Returns other errors unchanged. */
export function storeErrorOf(thrown: unknown): unknown {
  if (thrown instanceof SdsError || thrown instanceof StoreError) return thrown;
  const state = sqlState(thrown);
  // These codes mean a conflict, a lock timeout or a cancelled statement.
  if (isRepeatable(thrown) || ["55P03", "57014"].includes(state)) return new StoreError("busy", thrown);
  if (state.startsWith("23")) return new StoreError("conflict", thrown);
  // These codes mean too few resources, a full disk, a system error, a damaged file or a revoked right.
  const isLost = isConnectionLost(thrown) || isRefused(thrown) || isReadOnly(thrown) || /^(53|58|XX|42501)/.test(state);
  if (!isLost) return thrown;
  const isFull = state === "53100";
  return new StoreError("lost", thrown, isFull ? `the disk of the server is full: ${messageOf(thrown)}` : undefined);
}
