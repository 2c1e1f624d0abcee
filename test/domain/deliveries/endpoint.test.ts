import { describe, expect, test } from "bun:test";
import { parseEndpoint, refusedAddress } from "../../../src/domain/deliveries/endpoint.ts";
import { parseNetworks } from "../../../src/lib/networks.ts";

const none = parseNetworks("");

function verdict(url: string, allow = none): string {
  const parsed = parseEndpoint(url, allow);
  return "refused" in parsed ? parsed.refused : "accepted";
}

test.each([
  "https://hooks.example.com",
  "https://hooks.example.com/path?query=1#x",
  "https://hooks.example.com:443/",
  "https://hooks.example.com:1024/",
  "https://hooks.example.com:65535/",
  "https://hooks.example.com./",
  "https://HOOKS.Example.COM/",
  "https://xn--bcher-kva.example/",
  "https://bücher.example/",
  "https://8.8.8.8/",
  "https://[2606:4700:4700::1111]/",
  "https://a.local.example.com/",
  "https://hooks.example.com/a@b",
])("%s is accepted", (url) => {
  expect(verdict(url)).toBe("accepted");
});

describe("refused, with the reason", () => {
  const PRIVATE_NAME = /is a name of this machine or a private network$/;
  test.each<[string, string | RegExp]>([
    ["", "it is not a URL"],
    ["hooks.example.com", "it is not a URL"],
    ["https://", "it is not a URL"],
    ["https://hooks.example.com:99999/", "it is not a URL"],
    ["http://hooks.example.com/", "only https:// URLs are accepted"],
    ["ftp://hooks.example.com/", "only https:// URLs are accepted"],
    ["javascript:alert(1)", "only https:// URLs are accepted"],
    ["file:///etc/passwd", "only https:// URLs are accepted"],
    ["https://user@hooks.example.com/", "the URL has a user name or password in it"],
    ["https://:@hooks.example.com/", "the URL has a user name or password in it"],
    ["https://@hooks.example.com/", "the URL has a user name or password in it"],
    [
      "https://hooks.example.com\\@127.0.0.1/",
      "the URL has a backslash, a space, or a control or invisible character in it",
    ],
    ["https://hooks.example.com/ a", "the URL has a backslash, a space, or a control or invisible character in it"],
    ["https://hooks.exam\nple.com/", "the URL has a backslash, a space, or a control or invisible character in it"],
    ["https://hooks.example.com/\u0000", "the URL has a backslash, a space, or a control or invisible character in it"],
    [
      "https://hooks.example.com/\u202egnp",
      "the URL has a backslash, a space, or a control or invisible character in it",
    ],
    ["https://hooks.exam\u200bple.com/", "the URL has a backslash, a space, or a control or invisible character in it"],
    ["https://hooks.example.com/\u3164", "the URL has a backslash, a space, or a control or invisible character in it"],
    ["https://hooks.example.com:80/", "port 80 is not accepted: use 443, or 1024 and above"],
    ["https://hooks.example.com:22/", "port 22 is not accepted: use 443, or 1024 and above"],
    ["https://hooks.example.com:1023/", "port 1023 is not accepted: use 443, or 1024 and above"],
    ["https://hooks.example.com:0/", "port 0 is not accepted: use 443, or 1024 and above"],
    [`https://hooks.example.com/${"a".repeat(2048)}`, "the URL is longer than 2048 characters"],
    ["https://intranet/", "intranet is not a full host name"],
    ["https://intranet./", "intranet is not a full host name"],
    ["https://localhost/", PRIVATE_NAME],
    ["https://LOCALHOST./", PRIVATE_NAME],
    ["https://a.localhost/", PRIVATE_NAME],
    ["https://printer.local/", PRIVATE_NAME],
    ["https://printer.local./", PRIVATE_NAME],
    ["https://metadata.google.internal/", PRIVATE_NAME],
    ["https://router.home.arpa/", PRIVATE_NAME],
    ["https://abc.onion/", PRIVATE_NAME],
    ["https://localhost%2e/", PRIVATE_NAME],
    ["https://ｌｏｃａｌｈｏｓｔ/", PRIVATE_NAME],
    ["https://hooks.example.com../", "hooks.example.com. is not a full host name"],
    ["https://localhost../", "localhost. is not a full host name"],
    ["https://127.0.0.1../", /./],
    ["https://a..example.com/", "a..example.com is not a full host name"],
    ["https:/user@example.com/x", "it is not a URL"],
    ["https:///user:pw@example.com/x", "it is not a URL"],
    ["https:example.com", "it is not a URL"],
  ])("%s", (url, reason) => {
    expect(verdict(url)).toMatch(reason);
  });

  test.each([
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "0",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "127。0。0。1",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:8.8.8.8]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::1]",
    "[fe80::1]",
    "[fec0::1]",
    "[fc00::1]",
    "[fd12:3456::1]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[2002:7f00:1::]",
    "[2001::1]",
    "[100::1]",
    "[4000::1]",
    "[5f00::1]",
  ])("the address %s", (host) => {
    expect(verdict(`https://${host}/`)).not.toBe("accepted");
  });
});

describe("SDS_EGRESS_ALLOW", () => {
  const allow = parseNetworks("127.0.0.0/8, fd00::/8");

  test("allows its addresses, also with http", () => {
    expect(verdict("http://127.0.0.1:8080/", allow)).toBe("accepted");
    expect(verdict("https://[fd00::1]/", allow)).toBe("accepted");
    expect(verdict("http://10.0.0.1:8080/", allow)).toBe("only https:// URLs are accepted");
    expect(verdict("http://8.8.8.8:8080/", allow)).toBe("only https:// URLs are accepted");
    expect(refusedAddress("8.8.8.8", "http:", allow)).toBe("only https:// URLs are accepted");
    expect(refusedAddress("127.0.0.2", "http:", allow)).toBeUndefined();
  });

  test("does not allow other ports, names or passwords", () => {
    expect(verdict("http://127.0.0.1:80/", allow)).toBe("port 80 is not accepted: use 443, or 1024 and above");
    expect(verdict("http://localhost:8080/", allow)).toMatch("is a name of this machine");
    expect(verdict("http://a@127.0.0.1:8080/", allow)).toBe("the URL has a user name or password in it");
  });

  test.each(["x", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/8;1.1.1.1/8"])("%p is not a list of CIDRs", (text) => {
    expect(() => parseNetworks(text)).toThrow();
  });
});
