import ipaddr from "ipaddr.js";

/** Networks of IP addresses. */
export type Networks = readonly Cidr[];
type Cidr = [ipaddr.IPv4 | ipaddr.IPv6, number];

/** Reads CIDRs, separated by commas. @throws Error for any other text */
export function parseNetworks(text: string): Networks {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part) => ipaddr.parseCIDR(part));
}

export function isWithin(address: ipaddr.IPv4 | ipaddr.IPv6, networks: Networks): boolean {
  return networks.some((cidr) => address.kind() === cidr[0].kind() && address.match(cidr));
}

/** Whether a host is `localhost` or a loopback IP address. Only this machine can reach such a host. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || (ipaddr.isValid(host) && ipaddr.process(host).range() === "loopback");
}

/** Explanations of failed connections for a shop's developer, by error code of Bun or Node. */
const REASONS: Record<string, string> = {
  ConnectionRefused: "the connection was refused",
  ECONNREFUSED: "the connection was refused",
  ConnectionClosed: "the connection was closed before the answer ended",
  ECONNRESET: "the connection was closed before the answer ended",
  EADDRNOTAVAIL: "the network cannot be reached",
  ETIMEDOUT: "the host did not answer",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
  ERR_TLS_CERT_ALTNAME_INVALID: "the TLS certificate is for another name",
  CERT_HAS_EXPIRED: "the TLS certificate has expired",
  CERT_NOT_YET_VALID: "the TLS certificate is not valid yet",
  DEPTH_ZERO_SELF_SIGNED_CERT: "the TLS certificate is self-signed",
  SELF_SIGNED_CERT_IN_CHAIN: "the TLS certificate is from an unknown authority",
  UNABLE_TO_GET_ISSUER_CERT: "the TLS certificate is from an unknown authority",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "the TLS certificate is from an unknown authority, or its chain is incomplete",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "the TLS certificate is from an unknown authority, or its chain is incomplete",
  UNKNOWN_CERTIFICATE_VERIFICATION_ERROR: "the TLS certificate is not valid",
  EPROTO: "TLS failed",
  Malformed_HTTP_Response: "the answer is not HTTP",
  ResponseHeadersTooLarge: "the answer's headers are too large",
};

/** Returns why a connection failed, as the end of "Could not connect to the endpoint: …". */
export function connectReason(thrown: unknown): string {
  const { code, message = thrown } = Object(thrown) as { code?: unknown; message?: unknown };
  if (code === undefined) return String(message);
  return REASONS[String(code)] ?? `the connection failed (${code})`;
}

/** Whether a text is a port's number, from 0 to 65535. */
export function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) <= 65_535;
}

/** Parses HOST:PORT. An IPv6 host is in brackets. @returns undefined for any other text */
export function parseHostAndPort(text: string): { host: string; port: number } | undefined {
  const [, bracketed, plain, port = ""] = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:/@[\]]+)):(\d+)$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  return host !== undefined && isPort(port) ? { host, port: Number(port) } : undefined;
}

/** Returns the `http:` URL of a host and port. Puts an IPv6 host in brackets. */
export function httpAddress(host: string, port: number | undefined): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Replaces the wildcard address 0.0.0.0 or [::] with the loopback address of this machine. */
export function browsable(url: string): string {
  return url.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]");
}

/** Whether a parsed address has the scheme http or https. */
export function isHttp(url: URL | null): url is URL {
  return url?.protocol === "https:" || url?.protocol === "http:";
}
