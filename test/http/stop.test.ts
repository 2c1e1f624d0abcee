import { expect, test } from "bun:test";
import { testShop } from "../support/app.ts";
import { customers } from "../support/records.ts";

test("a stop while bodies are committed answers each body, and no later request uses the closed store", async () => {
  const { app, logged, intake } = await testShop();
  const { mirror } = app.store;
  const { applyRecords } = mirror;
  const { promise: committing, resolve: noteCommit } = Promise.withResolvers<void>();
  mirror.applyRecords = (...args) => {
    noteCommit();
    return applyRecords(...args);
  };
  const many = customers(200);
  const posted = [intake(many), intake(many), intake(many)];
  await committing;
  await app.stop();
  const statuses = (await Promise.all(posted)).map(({ status }) => status);
  expect(statuses).toEqual([202, 202, 202]);
  expect(logged.filter((line) => line.includes("a request failed"))).toEqual([]);
});
