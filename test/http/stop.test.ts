import { expect, test } from "bun:test";
import { testApp } from "../support/app.ts";
import { cancelFlow, customer, subscription } from "../support/records.ts";

test("a stop while large bodies are checked answers each of them, and leaves no request that uses a closed store", async () => {
  const { app, addShop, logged } = await testApp();
  const { intake } = await addShop();
  await intake(subscription(1));
  const { mirror } = app.store;
  const { knownContracts } = mirror;
  const { promise: checking, resolve: noteCheck } = Promise.withResolvers<void>();
  mirror.knownContracts = (...args) => {
    noteCheck();
    return knownContracts(...args);
  };
  // Whether the contract is known is asked at the end of the check.
  const many = [...Array.from({ length: 6_000 }, (_, n) => customer(n + 1)), cancelFlow("flow")];
  const posted = [intake(many), intake(many), intake(many)];
  await checking;
  await app.stop();
  const statuses = (await Promise.all(posted)).map(({ status }) => status);
  expect(statuses).toEqual([503, 503, 503]);
  expect(logged.filter((line) => line.includes("a request failed"))).toEqual([]);
});
