import { describe, expect, spyOn, test } from "bun:test";
import { acceptedEncoding } from "../../../src/http/encoding.ts";
import { answerOf, refusal } from "../../support/answer.ts";
import { apply, testShop } from "../../support/app.ts";
import { customers, order, subscription } from "../../support/records.ts";

async function shopWith(count: number, env: Record<string, string> = {}) {
  const all = await testShop(env);
  await apply(all.app, all.shop, customers(count));
  return all;
}

const headersOf = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => name !== "x-request-id"));

describe("an answer that the client has", () => {
  test.each([
    "/api/v1/customers",
    "/api/v1/customers?limit=1",
    "/api/v1/customers?updatedSince=2026-01-01T00:00:00Z&limit=1",
  ])("is 304 with the same headers: %s", async (path) => {
    const { get } = await shopWith(3);
    const full = await get(path);
    const tag = full.headers.get("etag") ?? "";
    const expected = headersOf(full);
    for (const header of [tag, `"x", ${tag}`, tag.replace("W/", ""), "*"]) {
      const short = await get(path, { "If-None-Match": header });
      expect([header, short.status, await short.text(), headersOf(short)]).toEqual([header, 304, "", expected]);
    }
    expect((await get(path, { "If-None-Match": '"x"' })).status).toBe(200);
  });

  test("is read for the first 304 of a page, and not for the next ones", async () => {
    const { app, get } = await shopWith(20);
    const headers = { "If-None-Match": (await get("/api/v1/customers")).headers.get("etag") ?? "" };
    const reads = spyOn(app.store.pages, "list");
    for (let asked = 0; asked < 3; asked += 1) expect((await get("/api/v1/customers", headers)).status).toBe(304);
    expect(reads).toHaveBeenCalledTimes(1);
  });

  test("is sent again after any change of its resource", async () => {
    const { app, shop, get } = await shopWith(1);
    const [list, row] = ["/api/v1/customers", `/api/v1/customers/${encodeURIComponent("gid://shopify/Customer/1")}`];
    const tags = await Promise.all([list, row].map(async (path) => (await get(path)).headers.get("etag") ?? ""));
    expect((await get(row, { "If-None-Match": tags[1] ?? "" })).status).toBe(304);
    await apply(app, shop, [subscription(2)]);
    expect((await get(list, { "If-None-Match": tags[0] ?? "" })).status).toBe(200);
    expect((await get(row, { "If-None-Match": tags[1] ?? "" })).status).toBe(200);
  });

  test("stays 304 while only other resources change, and its checkpoint is the newest", async () => {
    const { app, shop, get } = await shopWith(3);
    await apply(app, shop, [subscription(1), order(1, 1)]);
    const customer = `/api/v1/customers/${encodeURIComponent("gid://shopify/Customer/1")}`;
    const since = "updatedSince=2026-01-01T00:00:00Z";
    const filter = `customerId=${encodeURIComponent("gid://shopify/Customer/1")}`;
    const paths = ["/api/v1/customers", `/api/v1/customers?${since}`, customer];
    const others = ["/api/v1/orders", `/api/v1/orders?${since}&limit=1`, `/api/v1/orders?${filter}`];
    const tags = new Map<string, string>();
    for (const path of [...paths, ...others]) tags.set(path, (await get(path)).headers.get("etag") ?? "");
    await apply(app, shop, [order(1, 1, { status: "FAILED" })]);
    const ask = (path: string) => get(path, { "If-None-Match": tags.get(path) ?? "" });
    for (const path of paths) expect([path, (await ask(path)).status]).toEqual([path, 304]);
    for (const path of others) expect([path, (await ask(path)).status]).toEqual([path, 200]);
    const checkpoint = (await ask("/api/v1/customers")).headers.get("x-checkpoint") ?? "";
    expect(await (await get(`/api/v1/customers?since=${encodeURIComponent(checkpoint)}`)).json()).toMatchObject({
      data: [],
    });
  });

  test("has another tag for another address, shop or database", async () => {
    const { get, addShop } = await shopWith(0);
    const other = await addShop("beta.myshopify.com");
    const apart = await shopWith(0);
    const tag = (await get("/api/v1/customers")).headers.get("etag") ?? "";
    for (const ask of [
      () => get("/api/v1/customers?limit=2", { "If-None-Match": tag }),
      () => get("/api/v1/orders", { "If-None-Match": tag }),
      () => other.get("/api/v1/customers", { "If-None-Match": tag }),
      () => apart.get("/api/v1/customers", { "If-None-Match": tag }),
    ])
      expect((await ask()).status).toBe(200);
  });

  test("needs a currently valid key and a valid query", async () => {
    const { app, get, shop, keyId, clock } = await shopWith(1);
    const tag = (await get("/api/v1/customers")).headers.get("etag") ?? "";
    expect((await get("/api/v1/customers?cursor=x", { "If-None-Match": "*" })).status).toBe(400);
    await app.store.keys.revoke(shop.id, keyId, clock.now());
    expect((await get("/api/v1/customers", { "If-None-Match": tag })).status).toBe(401);
  });
});

describe("compression", () => {
  test.each([
    ["zstd", (bytes: Uint8Array<ArrayBuffer>) => Bun.zstdDecompressSync(bytes)],
    ["gzip", (bytes: Uint8Array<ArrayBuffer>) => Bun.gunzipSync(bytes)],
  ] as const)("with %s gives the same bytes", async (encoding, decode) => {
    const { get } = await shopWith(50);
    const plain = await get("/api/v1/customers");
    const encoded = await get("/api/v1/customers", { "Accept-Encoding": encoding });
    expect([plain.headers.get("content-encoding"), encoded.headers.get("content-encoding")]).toEqual([null, encoding]);
    expect(encoded.headers.get("vary")).toBe("Authorization, Accept-Encoding");
    expect(encoded.headers.get("etag")).toBe(plain.headers.get("etag"));
    const bytes = await encoded.bytes();
    const whole = await plain.bytes();
    expect(Buffer.from(decode(bytes)).equals(Buffer.from(whole))).toBe(true);
    expect(bytes.length).toBeLessThan(whole.length / 4);
  });

  test("begins at one kilobyte", async () => {
    const { get } = await shopWith(1);
    const { headers } = await get("/api/v1/customers", { "Accept-Encoding": "zstd" });
    expect([headers.get("content-encoding"), headers.get("vary")]).toEqual([null, "Authorization"]);
  });

  test.each([
    [null, undefined],
    ["", undefined],
    ["identity", undefined],
    ["br, deflate", undefined],
    ["gzip", "gzip"],
    ["gzip, deflate, br, zstd", "zstd"],
    ["gzip;q=1.0, zstd;q=0.5", "gzip"],
    ["zstd;q=0", undefined],
    ["gzip;q=0, zstd", "zstd"],
    ["*", "zstd"],
    ["*;q=0", undefined],
    ["zstd;q=0, *", "gzip"],
    ["GZIP ; Q=0.8", "gzip"],
    ["gzip;q=x", undefined],
  ])("for Accept-Encoding %p is %p", (header, expected) => {
    expect(acceptedEncoding(header)).toBe(expected as never);
  });
});

describe("the limit of requests", () => {
  test("counts for each key, after the key's check, and its refusal says when to go on", async () => {
    const { get, addShop, clock, request } = await shopWith(1, { SDS_RATE_LIMIT: "2/3" });
    const other = await addShop("beta.myshopify.com");
    const first = await get("/api/v1/customers");
    expect([first.headers.get("ratelimit"), first.headers.get("ratelimit-policy")]).toEqual([
      '"default";r=2;t=1',
      '"default";q=3;w=2',
    ]);
    await Promise.all([get("/api/v1/customers"), get("/api/v1/customers?cursor=x")]);
    const refused = await answerOf(await get("/api/v1/customers"));
    expect(refused).toEqual(
      refusal(429, "rate_limited", "This API key makes too many requests. Slow down, and try again.", {
        "retry-after": "1",
        ratelimit: '"default";r=0;t=2',
        "ratelimit-policy": '"default";q=3;w=2',
      }),
    );
    expect((await other.get("/api/v1/customers")).status).toBe(200);
    expect((await request("/api/v1/customers")).status).toBe(401);
    clock.ms += 500;
    expect([(await get("/api/v1/customers")).status, (await get("/api/v1/customers")).status]).toEqual([200, 429]);
  });

  test("is off by default", async () => {
    const { get } = await shopWith(1);
    expect((await get("/api/v1/customers")).headers.get("ratelimit")).toBeNull();
  });
});
