import { describe, expect, test } from "bun:test";
import {
  bounceAddress,
  type DocumentEntry,
  type FramedEntry,
  readBounce,
  readEntry,
} from "../../../src/http/app/entry-address.ts";

const PLACE = { clientId: "client", origin: "https://sds.example.com" };
const SHOP = "alpha.myshopify.com";
const base64 = (text: string) => Buffer.from(text).toString("base64");
const HOST = base64("admin.shopify.com/store/alpha");

const entry = (query: Record<string, string>, path = "/app") =>
  readEntry(`${path}?${new URLSearchParams(query)}`, PLACE);

function framed(query: Record<string, string>, path?: string): FramedEntry {
  const found = entry({ shop: SHOP, host: HOST, embedded: "1", ...query }, path);
  if (!("framed" in found) || found.framed === null) throw new Error(`not framed: ${JSON.stringify(found)}`);
  return found.framed;
}

describe("the address of a document", () => {
  test("in the admin's frame has the shop, and the ID token apart", () => {
    const all = framed({ id_token: "a.b.c", hmac: "x", timestamp: "1", session: "s", locale: "de", status: "dead" });
    expect(all).toEqual({
      shop: SHOP,
      idToken: "a.b.c",
      reload: `https://sds.example.com/app?shop=${SHOP}&host=${encodeURIComponent(HOST)}&embedded=1&locale=de&status=dead`,
      bouncedAt: null,
    });
    expect(framed({ host: base64(`${SHOP}/admin`) })).toMatchObject({ shop: SHOP, idToken: null });
  });

  test("without a shop is a frame that was loaded again", () => {
    expect(entry({ embedded: "1", id_token: "a.b.c" })).toEqual({ framed: null });
  });

  test.each<[string, Record<string, string>, string]>([
    ["with a host", { host: HOST }, "https://admin.shopify.com/store/alpha/apps/client"],
    ["with the shop's own admin", { host: base64(`${SHOP}/admin`) }, `https://${SHOP}/admin/apps/client`],
    ["without a host", {}, "https://admin.shopify.com/store/alpha/apps/client"],
    ["with another value of embedded", { embedded: "0" }, "https://admin.shopify.com/store/alpha/apps/client"],
  ])("outside of a frame leads to the admin, %s", (_title, query, outside) => {
    expect(entry({ shop: SHOP, id_token: "a.b.c", ...query })).toEqual({ outside });
  });

  test.each([
    "",
    "alpha",
    "alpha.example.com",
    "alpha.myshopify.com.evil.example",
    "evil.example/alpha.myshopify.com",
    "https://alpha.myshopify.com",
    "alpha.myshopify.com/",
    "alpha.myshopify.com; script-src *",
    "Alpha.myshopify.com",
    "-.myshopify.com",
    "a.b.myshopify.com",
    "alpha.myshopify.com\n",
  ])("is refused for the shop %p", (shop) => {
    expect(entry({ shop, host: HOST, embedded: "1" })).toEqual({ refused: "shop" });
  });

  test("is refused with two shops or two hosts", () => {
    const twice = (name: string) => readEntry(`/app?shop=${SHOP}&host=${HOST}&embedded=1&${name}=x`, PLACE);
    expect([twice("shop"), twice("host")]).toEqual([{ refused: "shop" }, { refused: "host" }]);
  });

  test.each([
    "",
    "x",
    base64("admin.shopify.com/store/beta"),
    base64("beta.myshopify.com/admin"),
    base64("admin.shopify.com"),
    base64("admin.shopify.com/store/alpha/../beta"),
    base64("evil.example"),
    base64("evil.example/store/alpha"),
    base64("admin.shopify.com/store/alpha@evil.example"),
    base64("evil@admin.shopify.com/store/alpha"),
  ])("is refused for the host %p", (host) => {
    expect(entry({ shop: SHOP, host, embedded: "1" })).toEqual({ refused: "host" });
    expect(entry({ shop: SHOP, host })).toEqual({ refused: "host" });
  });
});

describe("the bounce page", () => {
  const bounced = (fields: Record<string, string>) =>
    readBounce(`/app/bounce?${new URLSearchParams({ shop: SHOP, host: HOST, ...fields })}`, PLACE);

  test("comes back to the same page, without the ID token", () => {
    const all = framed({ id_token: "a.b.c", status: "dead" }, "/app/deliveries");
    const address = bounceAddress(all, 123);
    expect(address).not.toContain("a.b.c");
    expect(readBounce(address, PLACE)).toBe(SHOP);
    const query = new URL(address, PLACE.origin).searchParams;
    expect([query.get("shop"), query.get("host"), query.get("embedded")]).toEqual([SHOP, HOST, "1"]);
    const back = new URL(query.get("shopify-reload") ?? "");
    expect(`${back.origin}${back.pathname}`).toBe("https://sds.example.com/app/deliveries");
    const again = readEntry(`${back.pathname}${back.search}&id_token=d.e.f`, PLACE);
    expect(again).toEqual({ framed: { ...all, idToken: "d.e.f", bouncedAt: 123 } } as DocumentEntry);
  });

  test.each([
    "https://evil.example/app?shop=alpha.myshopify.com",
    "https://sds.example.com@evil.example/app?shop=alpha.myshopify.com",
    "https://user@sds.example.com/app?shop=alpha.myshopify.com",
    "https://sds.example.com.evil.example/app?shop=alpha.myshopify.com",
    "https://sds.example.com:444/app?shop=alpha.myshopify.com",
    "http://sds.example.com/app?shop=alpha.myshopify.com",
    "https:\\\\evil.example/app?shop=alpha.myshopify.com",
    "//evil.example/app?shop=alpha.myshopify.com",
    "/app?shop=alpha.myshopify.com",
    "javascript:alert(1)",
    "data:text/html,x",
    "https://sds.example.com/?shop=alpha.myshopify.com",
    "https://sds.example.com/apps?shop=alpha.myshopify.com",
    "https://sds.example.com/admin?shop=alpha.myshopify.com",
    "https://sds.example.com/app/../admin?shop=alpha.myshopify.com",
    "https://sds.example.com/app/bounce?shop=alpha.myshopify.com",
    "https://sds.example.com/app?shop=beta.myshopify.com",
    "https://sds.example.com/app",
    "",
  ])("refuses to load %p", (reload) => {
    expect(bounced({ "shopify-reload": reload })).toBeUndefined();
  });

  test("refuses a foreign shop or host, or two addresses", () => {
    const reload = `https://sds.example.com/app?shop=${SHOP}`;
    expect(bounced({ "shopify-reload": reload })).toBe(SHOP);
    expect(bounced({ "shopify-reload": reload, shop: "evil.example" })).toBeUndefined();
    expect(bounced({ "shopify-reload": reload, host: base64("evil.example") })).toBeUndefined();
    const twice = new URLSearchParams([
      ["shop", SHOP],
      ["shopify-reload", reload],
      ["shopify-reload", "https://evil.example/app"],
    ]);
    expect(readBounce(`/app/bounce?${twice}`, PLACE)).toBeUndefined();
  });
});
