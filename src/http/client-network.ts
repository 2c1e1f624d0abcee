import ipaddr from "ipaddr.js";

const LOOPBACK = /^(?:127\.|::1$|::ffff:127\.)/;

/**
 * The network by which a client is counted: an IPv4 address is counted alone, an IPv6 address with all of its /64,
 * because one host has countless addresses there.
 * @returns an empty text if `address` is no IP address
 */
function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return "";
  const parsed = ipaddr.process(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  const network = parsed.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(":")}::/64`;
}

/**
 * The network by which the client of a request is counted. Behind a reverse proxy on this machine it is that of the
 * address which the proxy added to X-Forwarded-For: the last one, because a client can write anything before it.
 * @param peer the address at the other end of the socket; undefined for a request that this process makes itself
 */
export function clientNetworkOf({ headers }: Request, peer: string | undefined): string {
  const forwarded = isLoopback(peer) ? headers.get("x-forwarded-for")?.split(",").at(-1)?.trim() : undefined;
  return networkOf(forwarded !== undefined && ipaddr.isValid(forwarded) ? forwarded : (peer ?? ""));
}

/** Whether a peer is this machine. A request without a socket comes from this process itself. */
export function isLoopback(peer: string | undefined): boolean {
  return peer === undefined || LOOPBACK.test(peer);
}
