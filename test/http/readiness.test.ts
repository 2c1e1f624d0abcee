import { expect, test } from "bun:test";
import { testApp } from "../support/app.ts";

test("a check of /readyz that waits for a locked database is valid for a second after its end", async () => {
  const { app, request, clock } = await testApp();
  let checks = 0;
  app.store.check = async () => {
    checks += 1;
    clock.ms += 2_000;
    throw new Error("database is locked");
  };
  const ask = async () => (await request("/readyz")).status;
  expect([await ask(), await ask(), checks]).toEqual([503, 503, 1]);
  clock.ms += 999;
  expect([await ask(), checks]).toEqual([503, 1]);
  clock.ms += 1;
  expect([await ask(), checks]).toEqual([503, 2]);
});
