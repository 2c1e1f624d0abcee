import ipaddr from "ipaddr.js";
import { isWithin, type Networks } from "../../lib/networks.ts";

/**
 * Networks that endpoints may use although their addresses are not global, such as test networks and private networks
 * (docs/webhooks.md, "Endpoint").
 */
export type EgressAllow = Networks;

export interface Endpoint {
  /** The checked URL. Requests use this object: its text is never parsed again. */
  url: URL;
  /** Host name or IP address, without brackets and without a trailing dot. */
  host: string;
  /** Whether the host is an IP address, which needs no DNS look-up. */
  isAddress: boolean;
  port: number;
}

const MAX_URL = 2048;
const REFUSED_SUFFIXES = ["localhost", "local", "internal", "home.arpa", "onion"];

/** Checks the URL. Use `refusedAddress` for each address of a host name. @returns the endpoint, or why it is refused */
export function parseEndpoint(text: string, allow: EgressAllow): { endpoint: Endpoint } | { refused: string } {
  const refuse = (refused: string) => ({ refused });
  if (text.length > MAX_URL) return refuse(`the URL is longer than ${MAX_URL} characters`);
  // Parsers disagree on these characters: one parser reads https://a.example\@127.0.0.1/ as a.example, another parser
  // as 127.0.0.1.
  // Invisible characters, such as U+202E, would show people another URL than the requests use.
  if (/[\\\s\p{Cc}\p{Cf}\p{DI}]/u.test(text))
    return refuse("the URL has a backslash, a space, or a control or invisible character in it");
  if (!URL.canParse(text) || (/^https?:/i.test(text) && !/^https?:\/\/[^/]/i.test(text)))
    return refuse("it is not a URL");
  const url = new URL(text);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && allow.length > 0))
    return refuse("only https:// URLs are accepted");
  const authority = text.slice(text.indexOf("://") + 3).split(/[/?#]/)[0] ?? "";
  if (authority.includes("@") || url.username !== "" || url.password !== "")
    return refuse("the URL has a user name or password in it");
  const standardPort = url.protocol === "https:" ? 443 : 80;
  const port = url.port === "" ? standardPort : Number(url.port);
  if (port !== 443 && port < 1024) return refuse(`port ${port} is not accepted: use 443, or 1024 and above`);

  const host = url.hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
  const isAddress = ipaddr.isValid(host);
  const reason = isAddress ? refusedAddress(host, url.protocol, allow) : refusedName(host);
  return reason === undefined ? { endpoint: { url, host, isAddress, port } } : refuse(reason);
}

function refusedName(host: string): string | undefined {
  if (/^\.|\.\.|\.$/.test(host)) return `${host} is not a full host name`;
  const suffix = REFUSED_SUFFIXES.find((each) => host === each || host.endsWith(`.${each}`));
  if (suffix !== undefined) return `${host} is a name of this machine or a private network`;
  return host.includes(".") ? undefined : `${host} is not a full host name`;
}

/** Returns why requests to this address are refused; undefined if they are allowed. */
export function refusedAddress(address: string, protocol: string, allow: EgressAllow): string | undefined {
  const parsed = ipaddr.parse(address);
  if (isWithin(parsed, allow)) return undefined;
  if (protocol !== "https:") return "only https:// URLs are accepted";
  const range = parsed.range();
  const global =
    range === "unicast" && (parsed.kind() === "ipv4" || ((parsed as ipaddr.IPv6).parts[0] ?? 0) >> 13 === 1);
  return global ? undefined : `${address} is ${RANGES[range] ?? "not a global"} address`;
}

const RANGES: Partial<Record<string, string>> = {
  private: "a private",
  uniqueLocal: "a private",
  loopback: "a loopback",
  linkLocal: "a link-local",
  multicast: "a multicast",
};
