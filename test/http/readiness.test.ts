import { expect, test } from "bun:test";
import { StoreError } from "../../src/store/port/store-error.ts";
import { testApp, testShop } from "../support/app.ts";
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

test("requests for /readyz during a long check start no other check", async () => {
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

test("the log says once that the database is away, whatever needs it, and once that it is back", async () => {
  const { app, request, clock, logged, get } = await testShop();
  const { store } = app;
  const works = { check: store.check, dueQueues: store.deliveries.dueQueues, list: store.pages.list };
  let asked = 0;
  const away = async (): Promise<never> => {
    asked += 1;
    throw new StoreError("lost", new Error("Failed to connect"));
  };
  store.check = away;
  store.deliveries.dueQueues = away;
  store.pages.list = away;
  const told = () => logged.flatMap((line) => (/"level":"(debug|info)"/.test(line) ? [] : [JSON.parse(line).message]));

  app.sender.wake();
  await eventually(() => asked > 2);
  expect([(await get("/api/v1/orders")).status, (await request("/readyz")).status]).toEqual([503, 503]);
  expect(told()).toEqual(["the database cannot be used; sds tries again"]);

  store.check = works.check;
  store.deliveries.dueQueues = works.dueQueues;
  store.pages.list = works.list;
  await eventually(() => !app.sender.failing);
  clock.ms += 10_000;
  expect((await request("/readyz")).status).toBe(200);
  expect(logged.filter((line) => line.includes("the database can be used again"))).toHaveLength(1);
});

test("the log says without a request that the database can be used again", async () => {
  const { app, clock, logged } = await testApp();
  const { check } = app.store;
  const dueQueues = app.store.deliveries.dueQueues;
  const away = async (): Promise<never> => {
    throw new StoreError("lost", new Error("Failed to connect"));
  };
  app.store.check = away;
  app.store.deliveries.dueQueues = away;
  await app.start();
  app.sender.wake();
  await eventually(() => logged.some((line) => line.includes("the database cannot be used")));
  app.store.check = check;
  app.store.deliveries.dueQueues = dueQueues;
  clock.ms += 10_000;
  // A job checks the database each second.
  await eventually(() => logged.some((line) => line.includes("the database can be used again")));
});
