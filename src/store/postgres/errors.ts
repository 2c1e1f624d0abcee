import { codeOf, SdsError } from "../../domain/error.ts";
import { StoreError } from "../port/store-error.ts";

/** The server's code of an error (SQLSTATE), which the driver calls `errno`; "" for an error of another kind. */
export function sqlState(thrown: unknown): string {
  const { errno } = (thrown ?? {}) as { errno?: unknown };
  return typeof errno === "string" && /^[0-9A-Z]{5}$/.test(errno) ? errno : "";
}

/** Whether a statement was refused because one before it in the transaction failed. It hides why that one did. */
export function isConsequence(thrown: unknown): boolean {
  return sqlState(thrown) === "25P02";
}

/** Whether a transaction met another one, so that it can succeed when it is run again. */
export function isRepeatable(thrown: unknown): boolean {
  return ["40001", "40P01"].includes(sqlState(thrown));
}

/** A certificate that is not trusted, or no TLS. */
const TLS_CODES = /^(ERR_POSTGRES_TLS_|ERR_TLS_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/;
const SIGN_IN_CODES = /^ERR_POSTGRES_(AUTH|SASL|CHANNEL_BINDING|UNKNOWN_AUTH|UNSUPPORTED_AUTH|INVALID_SERVER_)/;
const NETWORK_CODES = /^(ERR_POSTGRES_(CONNECTION_|(IDLE|LIFETIME)_TIMEOUT|(INVALID|UNEXPECTED)_MESSAGE)|ECONN|EPIPE)/;

/**
 * Whether no connection could be made, so that nothing was sent: nobody listens or answers, the server starts, stops,
 * or has too many connections.
 */
export function isUnreachable(thrown: unknown): boolean {
  const state = sqlState(thrown);
  if (state !== "") return /^(57P03|53300|08001|08004)$/.test(state);
  return /^ERR_POSTGRES_CONNECTION_(REFUSED|TIMEOUT|FAILED)$/.test(codeOf(thrown));
}

/** Whether the server only reads. After a switch to another server, the connections to the old one are of no use. */
export function isReadOnly(thrown: unknown): boolean {
  return sqlState(thrown) === "25006";
}

/** Whether the server ended a transaction in which nothing happened for too long, whatever was sent afterwards. */
export function wasIdleTooLong(thrown: unknown): boolean {
  return sqlState(thrown) === "25P03";
}

/** Whether the connection is gone: the network, a server that stops (57P01, 57P02), a session that it ended. */
export function isConnectionLost(thrown: unknown): boolean {
  if (isUnreachable(thrown)) return true;
  const state = sqlState(thrown);
  return state === "" ? NETWORK_CODES.test(codeOf(thrown)) : /^(08|57P0|25P03)/.test(state);
}

/** Whether the server does not let us in. Nothing was sent, and trying again does not help. */
export function isRefused(thrown: unknown): boolean {
  const state = sqlState(thrown);
  if (state !== "") return /^(28|3D000)/.test(state);
  return TLS_CODES.test(codeOf(thrown)) || SIGN_IN_CODES.test(codeOf(thrown));
}

export function isTlsRefusal(thrown: unknown): boolean {
  return TLS_CODES.test(codeOf(thrown));
}

/** Turns the driver's errors into errors of the port. What is no failure of the database stays as it is. */
export function storeErrorOf(thrown: unknown): unknown {
  if (thrown instanceof SdsError || thrown instanceof StoreError) return thrown;
  const state = sqlState(thrown);
  // A lock, a statement or a transaction took too long.
  if (isRepeatable(thrown) || ["55P03", "57014"].includes(state)) return new StoreError("busy", thrown);
  if (state.startsWith("23")) return new StoreError("conflict", thrown);
  // Too few resources, a full disk, an error of the system, a damaged file, a right that was taken away.
  const isLost = isConnectionLost(thrown) || isRefused(thrown) || isReadOnly(thrown) || /^(53|58|XX|42501)/.test(state);
  return isLost ? new StoreError("lost", thrown) : thrown;
}
