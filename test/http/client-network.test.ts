import { expect, test } from "bun:test";
import { clientNetworkOf } from "../../src/http/client-network.ts";

test.each<[string | undefined, string | undefined, string]>([
  ["192.0.2.1", undefined, "192.0.2.1"],
  ["::ffff:192.0.2.1", undefined, "192.0.2.1"],
  ["2001:db8:1:2:3::4", undefined, "2001:db8:1:2::/64"],
  ["192.0.2.1", "192.0.2.7", "192.0.2.1"],
  ["127.0.0.1", "192.0.2.7", "192.0.2.7"],
  ["::1", "192.0.2.7", "192.0.2.7"],
  ["::ffff:127.0.0.1", "2001:db8::7", "2001:db8:0:0::/64"],
  ["127.0.0.1", "10.0.0.1, 192.0.2.7", "192.0.2.7"],
  ["127.0.0.1", "192.0.2.7, nonsense", "127.0.0.1"],
  ["127.0.0.1", "", "127.0.0.1"],
  [undefined, "192.0.2.7", "192.0.2.7"],
  [undefined, undefined, ""],
])("a client at %p with X-Forwarded-For %p is counted as %p", (peer, forwarded, expected) => {
  const headers: Record<string, string> = forwarded === undefined ? {} : { "X-Forwarded-For": forwarded };
  expect(clientNetworkOf(new Request("http://sds.test/", { headers }), peer)).toBe(expected);
});
