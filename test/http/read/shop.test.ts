import { describe, expect, test } from "bun:test";
import { answerOf, notAllowed, success, UNAUTHORIZED } from "../../support/answer.ts";
import { testShop } from "../../support/app.ts";

const PATH = "/api/v1/shop";
const HEADERS = { "cache-control": "private, no-cache", vary: "Authorization" };
const ALPHA = { domain: "alpha.myshopify.com", plan: "pro", currency: "USD" };

describe("GET /api/v1/shop", () => {
  test("answers with the shop of the key, also right after a change of plan or currency", async () => {
    const { app, get } = await testShop();
    expect(await answerOf(await get(PATH))).toEqual(success(200, ALPHA, HEADERS));
    await app.store.shops.set("alpha.myshopify.com", { plan: "free+addon", currency: "JPY" });
    const changed = { ...ALPHA, plan: "free+addon", currency: "JPY" };
    expect(await answerOf(await get(PATH))).toEqual(success(200, changed, HEADERS));
  });

  test("answers 304 until the shop changes", async () => {
    const { app, get } = await testShop();
    const known = { "If-None-Match": (await get(PATH)).headers.get("etag") ?? "" };
    const again = await get(PATH, known);
    expect([again.status, await again.text(), again.headers.get("etag")]).toEqual([304, "", known["If-None-Match"]]);
    await app.store.shops.set("alpha.myshopify.com", { currency: "JPY" });
    expect((await get(PATH, known)).status).toBe(200);
  });

  test("checks the key, then the plan, then the rate, then the query", async () => {
    const { app, request, get } = await testShop({ SDS_RATE_LIMIT: "1/3" }, "free");
    expect(await answerOf(await request(PATH, { method: "POST" }))).toEqual(notAllowed("GET"));
    expect(await answerOf(await request(PATH))).toEqual(UNAUTHORIZED);
    expect((await get(PATH)).status).toBe(403);
    await app.store.shops.set("alpha.myshopify.com", { plan: "pro" });
    expect((await get(`${PATH}?utm_source=mail`)).status).toBe(200);
    const strict = await get(`${PATH}?limit=5`, { Prefer: "handling=strict" });
    expect([strict.status, await strict.json()]).toEqual([
      400,
      { error: { code: "bad_parameter", message: 'There is no parameter "limit": this address has no parameters.' } },
    ]);
    expect((await get(`${PATH}?include=customFields`)).status).toBe(400);
    expect((await get(PATH)).status).toBe(429);
  });

  test("has no other path", async () => {
    const { get } = await testShop();
    for (const path of [`${PATH}/`, `${PATH}/1`, "/api/v1/shops"])
      expect([path, (await get(path)).status]).toEqual([path, 404]);
  });
});
