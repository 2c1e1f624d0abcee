import { describe, expect, test } from "bun:test";
import { connectedTo, HOUR_MS } from "../../support/connected.ts";
import { charge, renewals, storeAsBefore, wait, weekly } from "./renewing.ts";

describe("an app that bills after the due time", () => {
  test("leaves cycle 1 out, and its first renewal is number 1", async () => {
    const { all, contract } = await weekly();
    const orders: string[] = [];
    for (let n = 1; n <= 3; n += 1) {
      wait(all, 1);
      all.test.clock.ms += HOUR_MS;
      orders.push(charge(all, contract, n + 1));
      await all.deliverAll();
    }
    const numbered = orders.map((gid, index) => [index + 1, "PAID", gid]);
    expect(await renewals(all)).toEqual(numbered);
    expect(await all.shop.all("subscriptions")).toMatchObject([{ cyclesCompleted: 3 }]);
    // A rebuilt mirror has the same ids.
    const fresh = await connectedTo(all.platform, {}, all.test.clock.ms + HOUR_MS);
    await fresh.load();
    expect(await fresh.shop.all("orders")).toEqual(await all.shop.all("orders"));
  });

  test("needs few points, also after many renewals", async () => {
    const { all, contract } = await weekly();
    for (let n = 1; n <= 40; n += 1) {
      wait(all, 1);
      charge(all, contract, n + 1);
      await all.deliverAll();
    }
    wait(all, 1);
    charge(all, contract, 42);
    const before = all.platform.bucket(all.remote.domain).spent;
    await all.deliverAll();
    expect(all.platform.bucket(all.remote.domain).spent - before).toBeLessThan(60);
    expect((await renewals(all)).length).toBe(41);
  });

  test("tries cycle 2 first: the declined renewal is number 1 too", async () => {
    const { all, contract } = await weekly();
    wait(all, 1);
    all.remote.failAttempt(all.remote.startAttempt(contract, 2));
    await all.deliverAll();
    expect(await renewals(all)).toEqual([[1, "FAILED", null]]);
    const order = charge(all, contract, 2);
    await all.deliverAll();
    expect(await renewals(all)).toEqual([[1, "RECOVERED", order]]);
  });

  test("skips cycle 2: the skipped renewal is number 1", async () => {
    const { all, contract } = await weekly();
    wait(all, 1.5);
    all.remote.skipCycle(contract, 2);
    await all.deliverAll();
    wait(all, 1);
    const order = charge(all, contract, 3);
    await all.deliverAll();
    expect(await renewals(all)).toEqual([
      [1, "SKIPPED", null],
      [2, "PAID", order],
    ]);
  });
});

test("a cycle that is left out between renewals has no number", async () => {
  const { all, contract } = await weekly();
  wait(all, 6);
  const gids = [2, 3, 4, 6].map((cycle) => charge(all, contract, cycle));
  await all.deliverAll();
  expect(await renewals(all)).toEqual(gids.map((gid, index) => [index + 1, "PAID", gid]));
});

test("a number that was served stays: a cycle that is charged after a later one gets the next number", async () => {
  const { all, contract } = await weekly();
  wait(all, 2);
  const second = charge(all, contract, 2);
  await all.deliverAll();
  const [before] = await all.shop.all("orders");
  const first = charge(all, contract, 1);
  await all.deliverAll();
  const third = charge(all, contract, 3);
  await all.deliverAll();
  expect(await renewals(all)).toEqual([
    [1, "PAID", second],
    [2, "PAID", first],
    [3, "PAID", third],
  ]);
  expect((await all.shop.all("orders")).find(({ cycleNumber }) => cycleNumber === 1)).toEqual(before ?? {});
});

test("a cycle that is skipped ahead leaves the numbers of the cycles before it free", async () => {
  const { all, contract } = await weekly();
  all.remote.skipCycle(contract, 2);
  await all.deliverAll();
  expect(await renewals(all)).toEqual([[2, "SKIPPED", null]]);
  wait(all, 1);
  const first = charge(all, contract, 1);
  await all.deliverAll();
  wait(all, 2);
  const third = charge(all, contract, 3);
  await all.deliverAll();
  expect(await renewals(all)).toEqual([
    [1, "PAID", first],
    [2, "SKIPPED", null],
    [3, "PAID", third],
  ]);
});

test("an order that the intake reported with its number keeps this number", async () => {
  const { all, contract } = await weekly();
  wait(all, 1);
  const gid = charge(all, contract, 2);
  await storeAsBefore(all, contract, [[1, gid]]);
  await all.deliverAll();
  wait(all, 1);
  const next = charge(all, contract, 3);
  await all.deliverAll();
  expect(await renewals(all)).toEqual([
    [1, "PAID", gid],
    [2, "PAID", next],
  ]);
});
