import { describe, expect, spyOn, test } from "bun:test";
import { type CachedAnswer, createAnswerCache } from "../../../src/http/read/answer-cache.ts";
import { apply, testShop } from "../../support/app.ts";
import { customer } from "../../support/records.ts";

function answer(changeCount: number): CachedAnswer {
  return { changeCount, branch: "", tag: `W/"${changeCount}"`, headers: {}, body: undefined };
}

describe("an answer is found", () => {
  test("for its shop and target, until the shop changes", () => {
    const cache = createAnswerCache();
    const kept = answer(5);
    cache.keep(1, "/a?b", kept);
    expect(cache.find({ shopId: 1, changeCount: 5, branch: "" }, "/a?b")).toBe(kept);
    expect(cache.find({ shopId: 1, changeCount: 6, branch: "" }, "/a?b")).toBeUndefined();
    expect(cache.find({ shopId: 1, changeCount: 5, branch: "" }, "/a")).toBeUndefined();
    expect(cache.find({ shopId: 1, changeCount: 5, branch: "later" }, "/a?b")).toBeUndefined();
    expect(cache.find({ shopId: 11, changeCount: 5, branch: "" }, "/a?b")).toBeUndefined();
  });

  test("until thousands of other answers came, and never for a long target", () => {
    const cache = createAnswerCache();
    const first = { shopId: 1, changeCount: 1, branch: "" };
    for (let n = 0; n <= 2_048; n += 1) cache.keep(1, `/${n}`, answer(1));
    expect(cache.find(first, "/0")).toBeDefined();
    for (let n = 0; n <= 2_048; n += 1) cache.keep(2, `/${n}`, answer(1));
    expect(cache.find(first, "/0")).toBeUndefined();
    const long = `/${"x".repeat(1_024)}`;
    cache.keep(1, long, answer(1));
    expect(cache.find(first, long)).toBeUndefined();
  });
});

describe("the question whether anything has changed", () => {
  async function reader() {
    const added = await testShop();
    await apply(added.app, added.shop, [customer(1)]);
    const checkpoint = (await added.get("/api/v1/customers")).headers.get("x-checkpoint") ?? "";
    const ask = (headers?: Record<string, string>, more = "") =>
      added.get(`/api/v1/customers?since=${encodeURIComponent(checkpoint)}${more}`, headers);
    return { ...added, ask };
  }
  const shown = async (response: Response) => ({
    headers: Object.fromEntries([...response.headers].filter(([name]) => name !== "x-request-id")),
    body: await response.text(),
  });

  test.each([
    ["a request", {}],
    ["a strict one", { Prefer: "handling=strict" }],
  ])("is read once, and answered with the same each time, under an id of its own: %s", async (_, headers) => {
    const { app, ask } = await reader();
    const reads = spyOn(app.store.pages, "changes");
    const first = await ask(headers);
    const second = await ask(headers);
    expect(reads).toHaveBeenCalledTimes(1);
    expect(second.headers.get("x-request-id")).not.toBe(first.headers.get("x-request-id"));
    expect(await shown(second)).toEqual(await shown(first));
  });

  test("is read again when the shop has changed", async () => {
    const { app, shop, ask } = await reader();
    await ask();
    await apply(app, shop, [customer(1, { firstName: "Ada" })]);
    expect((await shown(await ask())).body).toContain('"firstName":"Ada"');
  });

  test("needs a currently valid key", async () => {
    const { app, shop, keyId, clock, ask } = await reader();
    await ask();
    await app.store.keys.revoke(shop.id, keyId, clock.now());
    expect((await ask()).status).toBe(401);
  });

  test("is refused if it is strict with an unknown parameter, even after the same lenient request", async () => {
    const { ask } = await reader();
    expect((await ask({}, "&x=1")).status).toBe(200);
    expect((await ask({ Prefer: "handling=strict" }, "&x=1")).status).toBe(400);
    expect((await ask({ Prefer: "handling=strict" })).status).toBe(200);
  });
});
