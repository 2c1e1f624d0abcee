import { expect, test } from "bun:test";
import { nextTurn } from "../../src/lib/waits.ts";
import { testShop } from "../support/app.ts";
import { afterTest } from "../support/cleanup.ts";
import { eventually } from "../support/eventually.ts";
import { customers } from "../support/records.ts";

test("a stop while bodies are committed answers each body, and no later request uses the closed store", async () => {
  const { app, logged, intake } = await testShop();
  const { mirror, shops } = app.store;
  const { applyRecords } = mirror;
  const { promise: stopping, resolve: noteStop } = Promise.withResolvers<void>();
  afterTest(noteStop);
  mirror.applyRecords = async (...args) => {
    await stopping;
    return applyRecords(...args);
  };
  const { intakeSecret } = shops;
  let lookUps = 0;
  shops.intakeSecret = async (domain) => {
    const secret = await intakeSecret(domain);
    lookUps += 1;
    return secret;
  };
  const many = customers(200);
  const posted = [intake(many), intake(many), intake(many)];
  // The secret of each body is looked up twice: the test signs the body, and the program checks it.
  await eventually(() => lookUps >= 6);
  await nextTurn();
  const stopped = app.stop();
  noteStop();
  await stopped;
  const statuses = (await Promise.all(posted)).map(({ status }) => status);
  expect(statuses).toEqual([202, 202, 202]);
  expect(logged.filter((line) => line.includes("a request failed"))).toEqual([]);
});
