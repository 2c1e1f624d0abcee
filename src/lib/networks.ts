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
