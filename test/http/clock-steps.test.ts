import { describe, expect, test } from "bun:test";
import { testApp, testShop } from "../support/app.ts";
import { pressSignIn, signInPath } from "../support/visitor.ts";

const HOUR_MS = 3_600_000;
const WRONG = `/admin/sign-in?token=${"A".repeat(43)}`;

describe("a step of the wall clock by an hour", () => {
  test.each([-HOUR_MS, HOUR_MS])("(%d ms) does not lengthen what /readyz remembers", async (step) => {
    const { app, request, clock } = await testApp();
    const status = async () => (await request("/readyz")).status;
    const { check } = app.store;
    app.store.check = () => Promise.reject(new Error("disk full"));
    expect(await status()).toBe(503);
    app.store.check = check;
    clock.step(step);
    expect(await status()).toBe(503);
    clock.ms += 1_000;
    expect(await status()).toBe(200);
  });

  test.each([-HOUR_MS, HOUR_MS])(
    "(%d ms) neither lengthens nor lifts the limit on wrong sign-in links",
    async (step) => {
      const all = await testShop();
      for (let attempt = 0; attempt < 5; attempt += 1) await pressSignIn(all, WRONG);
      all.clock.step(step);
      const refused = await pressSignIn(all, WRONG);
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "60"]);
      all.clock.ms += 60_000;
      expect((await pressSignIn(all, await signInPath(all, all.shop))).status).toBe(303);
    },
  );
});
