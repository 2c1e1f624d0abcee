import { codeOf, messageOf, SdsError } from "../../domain/error.ts";
import { StoreError } from "../port/store-error.ts";
import { nameOf, type ServerAddress } from "./address.ts";
import { isConnectionLost, isRefused, isTlsRefusal, sqlState } from "./errors.ts";

/**
 * Returns an error that describes why the database cannot be opened, with the remedy. For an unknown problem, the error
 * quotes the server. The server never repeats a password.
 */
export function startError(thrown: unknown, address: ServerAddress): unknown {
  if (thrown instanceof SdsError) return thrown;
  const cause = thrown instanceof StoreError ? thrown.cause : thrown;
  const name = nameOf(address);
  const isOfDatabase =
    thrown instanceof StoreError || sqlState(cause) !== "" || isRefused(cause) || isConnectionLost(cause);
  const advice =
    adviceFor(cause, name, address) ?? (isOfDatabase ? `${name} cannot be used: ${messageOf(cause)}` : undefined);
  return advice === undefined ? thrown : new SdsError("failed", advice, { cause });
}

function adviceFor(thrown: unknown, name: string, { password }: ServerAddress): string | undefined {
  const state = sqlState(thrown);
  const said = messageOf(thrown);
  if (isTlsRefusal(thrown)) return certificateAdvice(thrown, name);
  if (state === "28P01")
    return password === ""
      ? `${name} wants a password: put it into the database address, or into the file of PGPASSFILE`
      : `${name} refuses the user or the password of the database address: correct them`;
  if (state.startsWith("28")) return `${name} refuses this user from this machine: ${said}`;
  if (state === "3D000") return `the server has no such database as ${name}: create it`;
  if (state === "42501" || state === "3F000") return lackedRight(name, said);
  if (state === "53300") return `${name} has too many connections already: raise max_connections of the server`;
  if (state === "57P03") return `${name} does not accept connections now: ${said}. Try again in a moment`;
  if (codeOf(thrown) === "ERR_POSTGRES_CONNECTION_TIMEOUT")
    return `${name} does not answer: check host and port of the database address, and firewalls in between`;
  if (codeOf(thrown) === "ERR_POSTGRES_CONNECTION_REFUSED")
    return `there is no connection to ${name}: start the server, or correct host and port of the database address`;
  return undefined;
}

export function lackedRight(name: string, said: string): string {
  return (
    `the user of the database address lacks a right in ${name}: ${said}. ` +
    "Make this user the owner of the database, or grant the user CREATE and USAGE on the schema"
  );
}

function certificateAdvice(thrown: unknown, name: string): string {
  const code = codeOf(thrown);
  if (code === "ERR_POSTGRES_TLS_NOT_AVAILABLE")
    return `${name} has no TLS: turn it on in the server, with a certificate for its name`;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return `the certificate of ${name} is for another name: use that name in the database address`;
  if (code === "CERT_HAS_EXPIRED") return `the certificate of ${name} has expired: renew it`;
  return (
    `the certificate of ${name} is not trusted (${messageOf(thrown)}): name the file with the certificate of its ` +
    "authority in the parameter sslrootcert of the database address"
  );
}
