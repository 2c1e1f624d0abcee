import { expect, test } from "bun:test";
import { testApp } from "../support/app.ts";
import { eventually } from "../support/eventually.ts";

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

test("requests for /readyz during a long check make no second one", async () => {
  const { app, request, clock } = await testApp();
  const check = Promise.withResolvers<void>();
  let checks = 0;
  app.store.check = () => {
    checks += 1;
    return checks === 1 ? check.promise : Promise.reject(new Error("a second check"));
  };
  const first = request("/readyz");
  await eventually(() => checks === 1);
  clock.ms += 1_500;
  expect([(await request("/readyz")).status, checks]).toEqual([200, 1]);
  check.reject(new Error("database is locked"));
  expect((await first).status).toBe(503);
  expect([(await request("/readyz")).status, checks]).toEqual([503, 1]);
});
