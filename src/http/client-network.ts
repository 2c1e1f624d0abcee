import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { isWithin, type Networks, parseNetworks } from "../lib/networks.ts";

/** Proxies on this machine. */
const LOOPBACK = parseNetworks("127.0.0.0/8, ::1/128");
/** Forms in which proxies write an address: in brackets, or with a port. */
const BRACKETED = /^\[([^\]]*)\](?::\d*)?$/;
const WITH_PORT = /^([\d.]+):\d*$/;
/** Length of the prefix of an IPv4-mapped IPv6 address, in bits. */
const MAPPED_BITS = 96;

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Tells who sent a request, and whether the request came by https. Trusts only the headers of trusted proxies. */
export interface Clients {
  /**
   * Returns the client's network. Limits treat a network as one client. For IPv4, the network is the single address.
   * For IPv6, the network is the whole /64, because one host can use every address in the /64.
   * @param peer the address at the other end of the socket; undefined for a request that this process makes itself
   * @returns an empty text if no address is known
   */
  networkOf(request: Request, peer: string | undefined): string;
  /** Returns the whole address of the client; an empty text if no address is known. */
  addressOf(request: Request, peer: string | undefined): string;
  /** Whether the client's connection is https. */
  isSecure(request: Request, peer: string | undefined): boolean;
}

/** @param trustedProxies proxies to trust in addition to those on this machine */
export function createClients(trustedProxies: Networks): Clients {
  const trusted = [...LOOPBACK, ...trustedProxies.map(unmapped)];
  const isTrusted = (address: Address | undefined) => address !== undefined && isWithin(address, trusted);

  function clientOf({ headers }: Request, peer: string | undefined): Address | undefined {
    let client = peer === undefined ? undefined : parse(peer);
    if (peer !== undefined && !isTrusted(client)) return client;
    // Each proxy appends its client's address, and earlier entries can be forged. So the client is the last address
    // that is not one of our proxies. If an entry is not an address, the proxy that wrote the entry is used as the
    // client.
    const entries = (headers.get("x-forwarded-for") ?? "").split(",").map((entry) => entry.trim());
    for (const entry of entries.filter((each) => each !== "").reverse()) {
      const address = parse(entry);
      if (address === undefined) break;
      client = address;
      if (!isTrusted(address)) break;
    }
    return client;
  }

  return {
    networkOf: (request, peer) => networkOf(clientOf(request, peer)),

    addressOf: (request, peer) => clientOf(request, peer)?.toString() ?? "",

    isSecure({ headers, url }, peer) {
      const forwarded = headers.get("x-forwarded-proto")?.split(",")[0]?.trim().toLowerCase();
      // A request without a socket comes from this process itself.
      const isTrustedPeer = peer === undefined || isTrusted(parse(peer));
      return url.startsWith("https:") || (isTrustedPeer && forwarded === "https");
    },
  };
}

/** Parses an address. An IPv4-mapped IPv6 address becomes IPv4. @returns undefined for any other text */
function parse(text: string): Address | undefined {
  const bare = BRACKETED.exec(text)?.[1] ?? WITH_PORT.exec(text)?.[1] ?? text;
  return isIP(bare) === 0 ? undefined : ipaddr.process(bare);
}

function unmapped([network, bits]: Networks[number]): Networks[number] {
  const isMapped = network instanceof ipaddr.IPv6 && network.isIPv4MappedAddress() && bits >= MAPPED_BITS;
  return isMapped ? [network.toIPv4Address(), bits - MAPPED_BITS] : [network, bits];
}

function networkOf(address: Address | undefined): string {
  if (address === undefined) return "";
  if (!(address instanceof ipaddr.IPv6)) return address.toString();
  const network = address.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(":")}::/64`;
}
