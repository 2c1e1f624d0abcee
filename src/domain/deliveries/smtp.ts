import { invalid } from "../error.ts";

/** A mail server, and the address from which we send mails through it. */
export interface SmtpServer {
  host: string;
  port: number;
  /** Whether the connection begins with TLS. Otherwise STARTTLS is required, except for a server on this machine. */
  isSecure: boolean;
  /** Whether the server is on this machine. If so, TLS is used only if `isSecure` is set. */
  isLocal: boolean;
  login: { user: string; pass: string } | null;
  /** The sender's address. */
  from: string;
}

const MAX_ADDRESS_LENGTH = 254;
const LOCAL_HOSTS = ["localhost", "127.0.0.1", "[::1]"];

/**
 * Reads `smtps://USER:PASSWORD@HOST:PORT/?from=ADDRESS`. Error messages do not quote the text, because it contains a
 * password.
 * @param name the setting, for messages
 * @throws SdsError `invalid`
 */
export function parseSmtpUrl(name: string, text: string): SmtpServer {
  const url = URL.parse(text);
  if (url === null || !["smtp:", "smtps:"].includes(url.protocol) || url.hostname === "" || /\s/.test(text))
    throw invalid(`${name} holds no address like smtps://USER:PASSWORD@HOST:465/?from=ADDRESS`);
  const unknown = [...url.searchParams.keys()].some((key) => key !== "from");
  if (unknown || url.hash !== "" || !["", "/"].includes(url.pathname))
    throw invalid(`${name} has a path, or another parameter than "from"`);
  const [user, pass] = decoded(name, url);
  const from = url.searchParams.get("from") ?? user;
  if (!isMailAddress(from)) throw invalid(`${name} needs the sender's address: add ?from=ADDRESS`);
  const isSecure = url.protocol === "smtps:";
  const isLocal = LOCAL_HOSTS.includes(url.hostname);
  const port = url.port === "" ? (isSecure ? 465 : isLocal ? 25 : 587) : Number(url.port);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  return { host, port, isSecure, isLocal, login: user === "" ? null : { user, pass }, from };
}

function decoded(name: string, { username, password }: URL): [user: string, pass: string] {
  try {
    return [decodeURIComponent(username), decodeURIComponent(password)];
  } catch {
    throw invalid(`${name} has a user or password with a % that begins no escape: write %25`);
  }
}

/**
 * Whether a text is one plain e-mail address. Quoted names, comments, lists and newlines are refused: they could add
 * recipients or headers. `!`, `%`, `=`, `?` and `|` are refused too: some mail servers read them as a route, an encoded
 * text or a command.
 */
export function isMailAddress(text: string): boolean {
  return (
    text.length <= MAX_ADDRESS_LENGTH &&
    /^[a-z0-9.#$&'*+/^_`{}~-]{1,64}@([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]$/i.test(text)
  );
}
