import { describe, expect, test } from "bun:test";
import { createClients } from "../../src/http/client-network.ts";
import { parseNetworks } from "../../src/lib/networks.ts";

function requestWith(name: string, values: readonly string[]): Request {
  return new Request("http://sds.test/", { headers: values.map((value): [string, string] => [name, value]) });
}

const networkOf = (trusted: string, peer: string | undefined, ...forwarded: string[]) =>
  createClients(parseNetworks(trusted)).networkOf(requestWith("X-Forwarded-For", forwarded), peer);

describe("without trusted proxies", () => {
  test.each<[string | undefined, string | undefined, string]>([
    ["192.0.2.1", undefined, "192.0.2.1"],
    ["::ffff:192.0.2.1", undefined, "192.0.2.1"],
    ["2001:db8:1:2:3::4", undefined, "2001:db8:1:2::/64"],
    ["fe80::1%eth0", undefined, "fe80:0:0:0::/64"],
    ["192.0.2.1", "192.0.2.7", "192.0.2.1"],
    ["10.0.0.1", "192.0.2.7", "10.0.0.1"],
    ["127.0.0.1", "192.0.2.7", "192.0.2.7"],
    ["127.1.2.3", "192.0.2.7", "192.0.2.7"],
    ["::1", "192.0.2.7", "192.0.2.7"],
    ["::ffff:127.0.0.1", "2001:db8::7", "2001:db8:0:0::/64"],
    ["127.0.0.1", "10.0.0.1, 192.0.2.7", "192.0.2.7"],
    ["127.0.0.1", "192.0.2.7, nonsense", "127.0.0.1"],
    ["127.0.0.1", "", "127.0.0.1"],
    ["127.0.0.1", undefined, "127.0.0.1"],
    [undefined, "192.0.2.7", "192.0.2.7"],
    [undefined, undefined, ""],
    ["nonsense", "192.0.2.7", ""],
  ])("a client at %p with X-Forwarded-For %p is counted as %p", (peer, forwarded, expected) => {
    expect(networkOf("", peer, ...(forwarded === undefined ? [] : [forwarded]))).toBe(expected);
  });
});

describe("behind proxies in 10.0.0.0/24 and fd00::/8", () => {
  const rows: [name: string, peer: string, forwarded: string[], expected: string][] = [
    ["a client that is no proxy, whatever it says", "192.0.2.1", ["198.51.100.1"], "192.0.2.1"],
    ["one proxy", "10.0.0.1", ["192.0.2.7"], "192.0.2.7"],
    ["one proxy, with a forged entry", "10.0.0.1", ["198.51.100.1, 192.0.2.7"], "192.0.2.7"],
    ["two proxies", "10.0.0.1", ["192.0.2.7, 10.0.0.2"], "192.0.2.7"],
    ["two proxies, with a forged entry", "10.0.0.1", ["198.51.100.1, 192.0.2.7, 10.0.0.2"], "192.0.2.7"],
    ["a forged proxy in front of the client", "10.0.0.1", ["10.0.0.9, 192.0.2.7, 10.0.0.2"], "192.0.2.7"],
    ["a proxy of the list behind one on this machine", "127.0.0.1", ["192.0.2.7, 10.0.0.2"], "192.0.2.7"],
    ["one on this machine behind a proxy of the list", "10.0.0.1", ["192.0.2.7, 127.0.0.1"], "192.0.2.7"],
    ["a neighbour of the list", "10.0.1.1", ["192.0.2.7"], "10.0.1.1"],
    ["a neighbour of the list in front of a proxy", "10.0.0.1", ["192.0.2.7, 10.0.1.1"], "10.0.1.1"],
    ["only proxies: the one that is furthest away", "10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"],
    ["a proxy without the header", "10.0.0.1", [], "10.0.0.1"],
    ["a proxy with an empty header", "10.0.0.1", [" , "], "10.0.0.1"],
    ["empty entries", "10.0.0.1", ["192.0.2.7,, 10.0.0.2,"], "192.0.2.7"],
    ["several headers", "10.0.0.1", ["198.51.100.1", "192.0.2.7", "10.0.0.2"], "192.0.2.7"],
    ["a proxy of IPv6", "fd00::1", ["2001:db8:1:2:3::4"], "2001:db8:1:2::/64"],
    ["a proxy of IPv4, written as IPv6", "::ffff:10.0.0.1", ["192.0.2.7"], "192.0.2.7"],
    ["entries of IPv4, written as IPv6", "10.0.0.1", ["::ffff:192.0.2.7, ::FFFF:10.0.0.2"], "192.0.2.7"],
    ["entries with ports", "10.0.0.1", ["192.0.2.7:4711, 10.0.0.2:80"], "192.0.2.7"],
    ["an entry in brackets", "10.0.0.1", ["[2001:db8::7]"], "2001:db8:0:0::/64"],
    ["an entry in brackets with a port", "10.0.0.1", ["[2001:db8::7]:4711, [fd00::2]:80"], "2001:db8:0:0::/64"],
    ["garbage from the nearest proxy", "10.0.0.1", ["192.0.2.7, unknown"], "10.0.0.1"],
    ["garbage from the proxy behind it", "10.0.0.1", ["192.0.2.7, unknown, 10.0.0.2"], "10.0.0.2"],
    ["garbage in front of the client", "10.0.0.1", ["<script>, 192.0.2.7"], "192.0.2.7"],
    ["an address in another notation", "10.0.0.1", ["192.0.2.7, 0x0a.0.0.2"], "10.0.0.1"],
    ["an address with leading zeros", "10.0.0.1", ["192.0.2.7, 010.0.0.2"], "10.0.0.1"],
    ["brackets that are not closed", "10.0.0.1", ["[2001:db8::7"], "10.0.0.1"],
    ["a name", "10.0.0.1", ["localhost"], "10.0.0.1"],
    ["a very long header", "10.0.0.1", [`${"10.0.0.2, ".repeat(5_000)}192.0.2.7`], "192.0.2.7"],
  ];
  test.each(rows)("%s", (_name, peer, forwarded, expected) => {
    expect(networkOf("10.0.0.0/24, fd00::/8", peer, ...forwarded)).toBe(expected);
  });
});

test("an IPv4 network that is written as IPv4-mapped IPv6 is the same network", () => {
  expect(networkOf("::ffff:10.0.0.0/120", "10.0.0.1", "192.0.2.7")).toBe("192.0.2.7");
  expect(networkOf("::ffff:10.0.0.0/120", "10.0.1.1", "192.0.2.7")).toBe("10.0.1.1");
});

test.each<[string, string | undefined, string[], boolean]>([
  ["", "127.0.0.1", ["https"], true],
  ["", "::1", ["HTTPS , http"], true],
  ["", "127.0.0.1", ["http"], false],
  ["", "127.0.0.1", [], false],
  ["", undefined, ["https"], true],
  ["", "10.0.0.1", ["https"], false],
  ["10.0.0.0/24", "10.0.0.1", ["https"], true],
  ["10.0.0.0/24", "127.0.0.1", ["https"], true],
  ["10.0.0.0/24", "10.0.1.1", ["https"], false],
])(
  "with the proxies %p, a request of %p with X-Forwarded-Proto %p is secure: %p",
  (trusted, peer, values, expected) => {
    const clients = createClients(parseNetworks(trusted));
    expect(clients.isSecure(requestWith("X-Forwarded-Proto", values), peer)).toBe(expected);
  },
);
