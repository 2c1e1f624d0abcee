import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { invalid, messageOf, type SdsError } from "../../domain/error.ts";
import { isLoopback } from "../../lib/networks.ts";

/** Address of a PostgreSQL database, and the login. */
export interface ServerAddress {
  host: string;
  port: number;
  /** Path of the server's socket; null for TCP. */
  socketPath: string | null;
  user: string;
  /** May be empty, because some servers need no password. */
  password: string;
  database: string;
  /** null without TLS. With TLS the certificate must be valid for the host. */
  tls: { rejectUnauthorized: true; serverName?: string; ca?: string } | null;
}

const DEFAULT_PORT = 5432;
/** Names of the libpq parameters that sds accepts in an address. */
const PARAMETERS = ["sslmode", "sslrootcert", "host"];
const EXAMPLE = "postgres://sds@db.example.com/sds";
/** libpq's value of `sslrootcert` that means the default certificate authorities. */
const USUAL_AUTHORITIES = "system";

/**
 * Parses a database address. Error messages never repeat the address, because it may hold a password.
 * @param passwordFile a file in libpq's .pgpass format, used if the address has no password
 * @throws SdsError `invalid`
 */
export function parseServerAddress(text: string, passwordFile: string | null): ServerAddress {
  // The address of a socket has no host, but `URL` refuses a user without a host. So `localhost` is added before
  // parsing.
  const withoutHost = /^(postgres(?:ql)?:\/\/[^/?#@]*@)(?=[:/?]|$)/i;
  const hasHost = !withoutHost.test(text.trim());
  const url = URL.parse(text.trim().replace(withoutHost, "$1localhost"));
  if (url === null || !["postgres:", "postgresql:"].includes(url.protocol) || url.hash !== "")
    throw unusable(`it must be like ${EXAMPLE}, and a password in it must have codes such as %2F for / ? # @ : and %`);
  const parameters = parametersOf(url);
  const host = hostOf(url);
  const port = url.port === "" ? DEFAULT_PORT : Number(url.port);
  const user = decoded(url.username);
  const database = decoded(url.pathname.slice(1)) || user;
  if (user === "" || /[/\0]/.test(database + user))
    throw unusable(`it must name a user and a database, as ${EXAMPLE} does`);
  const folder = parameters.get("host") ?? null;
  if (folder !== null && (!folder.startsWith("/") || hasHost))
    throw unusable("its parameter host must be the folder of the server's socket, and then it has no other host");
  const hosts = folder === null ? [host] : [folder, "localhost"];
  const password = decoded(url.password) || passwordFrom(passwordFile, [hosts, [String(port)], [database], [user]]);
  return {
    host,
    port,
    socketPath: folder === null ? null : join(folder, `.s.PGSQL.${port}`),
    user,
    password,
    database,
    tls: folder === null ? tlsOf(parameters, host) : null,
  };
}

/**
 * Returns a function that reads the login for each new connection, because the password may change while the program
 * runs. If the file cannot be used, the function returns the previous login.
 * @param file the file with the address; null if the address is not in a file
 */
export function loginReader(
  { user, password }: ServerAddress,
  { file, url, passwordFile }: { file: string | null; url: string; passwordFile: string | null },
): () => Pick<ServerAddress, "user" | "password"> {
  let login = { user, password };
  return () => {
    try {
      const address = parseServerAddress(file === null ? url : readFileSync(file, "utf8"), passwordFile);
      login = { user: address.user, password: address.password };
    } catch {
      // The file is missing or empty while somebody replaces it.
    }
    return login;
  };
}

/**
 * Parses the parameters of an address. Error messages do not repeat the names of unknown parameters. If a password
 * contains a `?`, such a name may be the rest of the password.
 */
function parametersOf(url: URL): Map<string, string> {
  const parameters = new Map(url.searchParams);
  if ([...parameters.keys()].some((name) => !PARAMETERS.includes(name)))
    throw unusable(`it has a parameter that sds does not know: known are ${PARAMETERS.join(", ")}`);
  if (parameters.size < [...url.searchParams].length) throw unusable("it has a parameter twice");
  return parameters;
}

function hostOf(url: URL): string {
  const host = decoded(url.hostname).replace(/^\[|\]$/g, "");
  if (isIP(host) === 0 && !/^[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?$/i.test(host))
    throw unusable("its host must be one name or one IP address");
  return host;
}

/** Returns a database's name for messages. The name contains neither user nor password. */
export function nameOf({ host, port, socketPath, database }: ServerAddress): string {
  return socketPath === null
    ? `postgres://${isIP(host) === 6 ? `[${host}]` : host}:${port}/${database}`
    : `the database ${database} at ${socketPath}`;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch (thrown) {
    throw unusable("it has a % that does not begin a code", thrown);
  }
}

/**
 * Chooses the TLS options. The certificate of a server on another machine must be verified. Otherwise an attacker on
 * the network could pose as the server. libpq's `require` accepts any certificate, so sds refuses `require`.
 */
function tlsOf(parameters: Map<string, string>, host: string): ServerAddress["tls"] {
  const isLocal = isLoopback(host);
  const mode = parameters.get("sslmode") ?? (isLocal ? "disable" : "verify-full");
  if (mode === "disable" && isLocal) return null;
  if (mode !== "verify-full")
    throw unusable(
      isLocal
        ? 'its sslmode must be "disable" or "verify-full"'
        : 'its sslmode must be "verify-full", because the server is on another machine',
    );
  const file = parameters.get("sslrootcert") ?? USUAL_AUTHORITIES;
  // SNI is for names, not for IP addresses.
  const named = isIP(host) === 0 ? { serverName: host } : {};
  return { rejectUnauthorized: true, ...named, ...(file !== USUAL_AUTHORITIES && { ca: readCertificates(file) }) };
}

function readCertificates(file: string): string {
  try {
    const text = readFileSync(file, "utf8");
    if (text.includes("-----BEGIN CERTIFICATE-----")) return text;
  } catch (thrown) {
    throw unusable(`its sslrootcert cannot be read: ${messageOf(thrown)}`, thrown);
  }
  throw unusable("its sslrootcert has no certificate in PEM");
}

/**
 * Returns the password of the first matching line; "" without a match. See libpq, "The Password File".
 * @param wanted accepted values of host, port, database and user
 */
function passwordFrom(file: string | null, wanted: readonly (readonly string[])[]): string {
  if (file === null) return "";
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (thrown) {
    throw invalid(`PGPASSFILE cannot be read: ${messageOf(thrown)}`, thrown);
  }
  for (const line of text.split(/[\r\n]+/)) {
    if (line.startsWith("#")) continue;
    const fields = line.match(/(?:\\.|[^\\:])+/g)?.map((field) => field.replaceAll(/\\(.)/g, "$1")) ?? [];
    const fits = wanted.every((values, index) => [...values, "*"].includes(fields[index] ?? ""));
    if (fits && fields.length >= 5) return fields[4] ?? "";
  }
  return "";
}

function unusable(reason: string, cause?: unknown): SdsError {
  return invalid(`the database address cannot be used: ${reason}`, cause);
}
