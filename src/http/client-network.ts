import ipaddr from "ipaddr.js";

/**
 * The network by which a client is counted: an IPv4 address is counted alone, an IPv6 address with all of its /64,
 * because one host has countless addresses there.
 * @returns an empty text if `address` is no IP address
 */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return "";
  const parsed = ipaddr.process(address);
  if (!(parsed instanceof ipaddr.IPv6)) return parsed.toString();
  const network = parsed.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(":")}::/64`;
}
