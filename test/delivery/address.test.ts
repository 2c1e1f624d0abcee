import { expect, test } from "bun:test";
import { acceptEndpoint, checkEndpoint, type Resolve } from "../../src/delivery/address.ts";
import { parseNetworks } from "../../src/lib/networks.ts";

const PUBLIC: Resolve = async () => ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"];
const NOWHERE: Resolve = () => Promise.reject(new Error("ENOTFOUND"));

test("an endpoint has all addresses of its name", async () => {
  const checked = await checkEndpoint("https://hooks.example.com/", PUBLIC, []);
  expect(checked).toMatchObject({
    addresses: ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"],
    endpoint: { host: "hooks.example.com" },
  });
});

test("an endpoint whose host is an address is not looked up", async () => {
  expect(await checkEndpoint("https://93.184.215.14/", NOWHERE, [])).toMatchObject({ addresses: ["93.184.215.14"] });
});

test.each<[string, Resolve]>([
  ["cannot be looked up", NOWHERE],
  ["has no address", async () => []],
])("a name that %s may be saved, with a warning", async (_name, resolve) => {
  const url = "https://hooks.example.com/";
  expect(await checkEndpoint(url, resolve, [])).toEqual({ unresolved: "the name hooks.example.com does not resolve" });
  expect(await acceptEndpoint(url, resolve, [])).toBe(
    "the name hooks.example.com does not resolve at present; the URL is kept",
  );
});

test.each(["EMFILE", "ENFILE"])(
  "a look-up without a free descriptor (%s) is our failure, not the endpoint's",
  async (code) => {
    const resolve: Resolve = () => Promise.reject(Object.assign(new Error("no file descriptor is left"), { code }));
    const message = `no socket can be opened (${code})`;
    await expect(checkEndpoint("https://hooks.example.com/", resolve, [])).rejects.toMatchObject({
      code: "failed",
      message,
    });
  },
);

test("a URL whose name resolves is accepted without a warning", async () => {
  expect(await acceptEndpoint("https://hooks.example.com/", PUBLIC, [])).toBeUndefined();
});

test.each<[string, string[], string]>([
  ["ftp://hooks.example.com/", ["93.184.215.14"], "only https:// URLs are accepted"],
  ["https://hooks.example.com/", ["93.184.215.14", "10.0.0.1"], "10.0.0.1 is a private address"],
  ["https://127.0.0.1/", [], "127.0.0.1 is a loopback address"],
])("%s at %j is not accepted", async (url, addresses, reason) => {
  const accepted = acceptEndpoint(url, async () => addresses, []);
  await expect(accepted).rejects.toMatchObject({ code: "invalid", message: `this URL is not accepted: ${reason}` });
});

test("a private address is accepted if the operator allows its network", async () => {
  const resolve: Resolve = async () => ["10.0.0.1"];
  const allow = parseNetworks("10.0.0.0/8");
  const url = "http://hooks.example.com:8080/";
  expect(await checkEndpoint(url, resolve, allow)).toMatchObject({ addresses: ["10.0.0.1"] });
  expect(await checkEndpoint(url, PUBLIC, allow)).toEqual({ refused: "only https:// URLs are accepted" });
});
