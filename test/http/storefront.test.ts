import { describe, expect, test } from "bun:test";
import { saveStyle } from "../../src/actions/style.ts";
import type { Shop } from "../../src/domain/shop.ts";
import { createWidgetStyleHandler } from "../../src/http/storefront.ts";
import { createLog } from "../../src/lib/log.ts";
import type { StyleStore, WidgetStyle } from "../../src/store/port/styles.ts";
import { removeShop } from "../conformance/fixtures.ts";
import { OPERATOR } from "../support/actors.ts";
import { answerOf, NOT_FOUND, notAllowed } from "../support/answer.ts";
import { START, type TestApp, testApp, testShop } from "../support/app.ts";

const PATH = "/storefront/alpha.myshopify.com/widget.css";
const STYLE = ".button { color: #123456 }";
const RULES = "@scope (.sds-widget){\n.sds-widget:scope .button{color:#123456;}\n}\n";
const HEADERS = {
  "access-control-allow-origin": "*",
  "cache-control": "public, max-age=86400",
  "content-type": "text/css; charset=utf-8",
  vary: "Accept-Encoding",
  "x-content-type-options": "nosniff",
};

/** Status, headers and body of an answer. The headers that differ each time are left out. */
async function styleOf(response: Response) {
  const tag = response.headers.get("etag");
  expect(tag).toMatch(/^W\/"[0-9a-f]{16}"$/);
  const headers = Object.fromEntries(
    [...response.headers].filter(([name]) => name !== "etag" && name !== "x-request-id"),
  );
  return { status: response.status, headers, body: await response.text() };
}

async function save({ app }: TestApp, shop: Shop, source: string): Promise<void> {
  expect(await saveStyle(app.store, { shop, source, actor: OPERATOR }, START)).toEqual({
    bytes: Buffer.byteLength(source),
    warnings: expect.any(Array),
  });
}

describe("the widget's stylesheet", () => {
  test("is empty until a style is saved, and each change is in the next answer", async () => {
    const { shop, ...all } = await testShop();
    const empty = { status: 200, headers: HEADERS, body: "" };
    expect(await styleOf(await all.request(PATH))).toEqual(empty);
    await save(all, shop, STYLE);
    const first = await all.request(PATH);
    expect(await styleOf(first)).toEqual({ status: 200, headers: HEADERS, body: expect.stringContaining(RULES) });
    await save(all, shop, STYLE.replace("#123456", "red"));
    const second = await all.request(PATH);
    expect(await second.text()).toContain("color:red");
    expect(second.headers.get("etag")).not.toBe(first.headers.get("etag"));
    await all.app.store.styles.clear(shop.id);
    expect(await styleOf(await all.request(PATH))).toEqual(empty);
  });

  test("is 304 without a body for its entity tag", async () => {
    const { shop, ...all } = await testShop();
    await save(all, shop, STYLE);
    const tag = (await all.request(PATH)).headers.get("etag") ?? "";
    const { "content-type": type, ...kept } = HEADERS;
    const known = await all.request(PATH, { headers: { "If-None-Match": `"x", ${tag}` } });
    expect(await styleOf(known)).toEqual({ status: 304, headers: { ...kept, "content-type": type }, body: "" });
    await save(all, shop, `${STYLE} b {}`);
    await save(all, shop, ".other { color: red }");
    expect((await all.request(PATH, { headers: { "If-None-Match": tag } })).status).toBe(200);
  });

  test.each([
    ["zstd, gzip", "zstd"],
    ["gzip", "gzip"],
    ["br", undefined],
  ])("with Accept-Encoding %s has the encoding %p from 1 KiB on", async (accepted, encoding) => {
    const { shop, ...all } = await testShop();
    const large = Array.from({ length: 100 }, (_, at) => `.c${at} { color: red }`).join("\n");
    const read = (path = PATH) => all.request(path, { headers: { "Accept-Encoding": accepted } });
    await save(all, shop, STYLE);
    expect((await read()).headers.get("content-encoding")).toBeNull();
    await save(all, shop, large);
    const plain = await (await all.request(PATH)).text();
    const answer = await read();
    expect(answer.headers.get("content-encoding")).toBe(encoding ?? null);
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const decoded =
      encoding === "zstd" ? Bun.zstdDecompressSync(bytes) : encoding === "gzip" ? Bun.gunzipSync(bytes) : bytes;
    expect(Buffer.from(decoded).toString()).toBe(plain);
  });

  test("is empty on a plan without access", async () => {
    const { shop, ...all } = await testShop({}, "free");
    await save(all, shop, STYLE);
    expect(await styleOf(await all.request(PATH))).toEqual({ status: 200, headers: HEADERS, body: "" });
    await all.app.store.shops.set(shop.domain, { plan: "free+addon" });
    expect(await (await all.request(PATH)).text()).toContain(RULES);
  });

  test("never reaches another shop, even with the same source", async () => {
    const all = await testApp();
    const { shop } = await all.addShop();
    const { shop: other } = await all.addShop("beta.myshopify.com");
    await save(all, shop, STYLE);
    const others = () => all.request("/storefront/beta.myshopify.com/widget.css").then((answer) => answer.text());
    expect(await others()).toBe("");
    await save(all, other, STYLE);
    expect(await others()).toContain(RULES);
    await save(all, shop, ".button { color: red }");
    expect(await others()).toContain(RULES);
  });

  test("is empty, and logged once, if this version refuses the stored source", async () => {
    const { shop, logged, app, request } = await testShop();
    await app.store.styles.set(shop.id, { source: "@import 'https://example.com/x.css';", hash: "refused" });
    expect(await (await request(PATH)).text()).toBe("");
    expect(await (await request(PATH)).text()).toBe("");
    expect(logged.filter((line) => line.includes("a stored style is refused"))).toHaveLength(1);
  });

  test("is read once for many requests at once, and then kept in memory", async () => {
    const { shop, ...all } = await testShop();
    await save(all, shop, STYLE);
    const { styles } = all.app.store;
    const { find } = styles;
    let reads = 0;
    styles.find = (id) => {
      reads += 1;
      return find(id);
    };
    await Promise.all(Array.from({ length: 20 }, () => all.request(PATH)));
    await all.request(PATH);
    expect(reads).toBe(1);
  });
});

/**
 * Makes a handler without a database.
 * @param hashOf the hash of a shop's style when its request arrives
 * @returns a function that reads the stylesheet of a shop through the handler
 */
function readerOn(find: StyleStore["find"], hashOf: (shopId: number) => string, maxCachedBytes?: number) {
  const shopOf = (domain: string) => {
    const shopId = Number(domain.split(".")[0]);
    return { shopId, plan: "pro" as const, hash: hashOf(shopId) };
  };
  const log = createLog("debug", { write: () => undefined }, Date.now);
  const handler = createWidgetStyleHandler({ shopOf, find }, log, maxCachedBytes);
  return async (shopId: number): Promise<string> => {
    const id = `${shopId}.example.com`;
    const request = new Request(`http://sds.test/storefront/${id}/widget.css`);
    return (await handler(request, { id, client: () => "", isSecure: () => false })).text();
  };
}

test("a shop never gets the style of another shop that changes while it is read", async () => {
  const changed = Promise.withResolvers<WidgetStyle>();
  const find = async (shopId: number) => (shopId === 1 ? changed.promise : { source: STYLE, hash: "same" });
  const read = readerOn(find, () => "same");
  const [first, second] = [read(1), read(2)];
  changed.resolve({ source: ".other { color: red }", hash: "other" });
  expect(await first).toContain(".other");
  expect(await second).toContain(RULES);
});

test("many stylesheets that are not in memory are scoped in different turns of the event loop", async () => {
  let turn = 0;
  const tick = () => {
    turn += 1;
    timer = setImmediate(tick);
  };
  let timer = setImmediate(tick);
  const read = readerOn(async (shopId) => ({ source: `.shop-${shopId} { color: red }`, hash: `${shopId}` }), String);
  // Not measured, because the first call also loads the parser.
  await read(0);
  const turns = await Promise.all([1, 2, 3, 4, 5].map((shopId) => read(shopId).then(() => turn)));
  clearImmediate(timer);
  expect(new Set(turns).size).toBe(5);
});

test("the stylesheets that were not used longest leave the memory when it is full", async () => {
  const reads: number[] = [];
  const find = async (shopId: number) => {
    reads.push(shopId);
    return { source: `.shop-${shopId} { color: red }`, hash: `${shopId}` };
  };
  const read = readerOn(find, String, 3_000);
  for (const shop of [1, 2, 1, 3, 1, 2]) expect(await read(shop)).toContain(`.shop-${shop}{color:red;}`);
  expect(reads).toEqual([1, 2, 3, 2]);
});

describe("a shop that has no stylesheet is 404", () => {
  test.each([
    ["unknown", "/storefront/beta.myshopify.com/widget.css"],
    ["in upper case", "/storefront/Alpha.myshopify.com/widget.css"],
    ["encoded", "/storefront/alpha%2Emyshopify.com/widget.css"],
    ["without a dot", "/storefront/alpha/widget.css"],
    ["with a zero byte", "/storefront/alpha.myshopify.com%00/widget.css"],
    ["very long", `/storefront/${"a".repeat(4_000)}.com/widget.css`],
  ])("%s, after the same read", async (_name, path) => {
    const { app, request } = await testShop();
    const { shopOf } = app.store.styles;
    let reads = 0;
    app.store.styles.shopOf = (domain) => {
      reads += 1;
      return shopOf(domain);
    };
    expect(await answerOf(await request(path))).toEqual(NOT_FOUND);
    await request(PATH);
    expect(reads).toBe(2);
  });

  test("in removal, or removed", async () => {
    const { app, shop, request } = await testShop();
    await app.store.shops.beginRemoval(shop.domain, START);
    expect(await answerOf(await request(PATH))).toEqual(NOT_FOUND);
    await removeShop(app.store, shop.domain);
    expect(await answerOf(await request(PATH))).toEqual(NOT_FOUND);
  });

  test("for other paths below /storefront", async () => {
    const { request } = await testShop();
    for (const path of ["/storefront", "/storefront/alpha.myshopify.com", `${PATH}/`, `/x${PATH}`])
      expect(await answerOf(await request(path))).toEqual(NOT_FOUND);
  });
});

test("the stylesheet takes GET and HEAD, for a known shop and for an unknown one", async () => {
  const { request } = await testShop();
  for (const path of [PATH, "/storefront/unknown.myshopify.com/widget.css"])
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
      expect(await answerOf(await request(path, { method }))).toEqual(notAllowed("GET, HEAD"));
  expect((await request(PATH, { method: "HEAD" })).status).toBe(200);
});
