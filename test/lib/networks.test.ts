import { expect, test } from "bun:test";
import { httpAddress } from "../../src/lib/networks.ts";

test("an IPv6 host is in brackets in an address", () => {
  expect(httpAddress("::1", 80)).toBe("http://[::1]:80");
  expect(httpAddress("127.0.0.1", 8080)).toBe("http://127.0.0.1:8080");
});
