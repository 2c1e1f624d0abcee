import { describe, expect, test } from "bun:test";
import { type ConnectedShop, connectedTo, HOUR_MS, LINE, withMirroredContract } from "../../support/connected.ts";

const WEEK_MS = 7 * 24 * HOUR_MS;

/** A contract with weekly cycles that the mirror has. */
function weekly() {
  return withMirroredContract({ interval: "WEEK", lines: [LINE], originOrder: false });
}

function charge({ remote }: ConnectedShop, contract: string, cycle: number): string {
  return remote.succeedAttempt(remote.startAttempt(contract, cycle));
}

/** The orders by number: the status, the id, and the order's gid. */
async function renewals({ shop }: ConnectedShop) {
  const orders = await shop.all("orders");
  const byNumber = orders.toSorted((a, b) => Number(a["cycleNumber"]) - Number(b["cycleNumber"]));
  return byNumber.map(({ cycleNumber, status, shopifyId }) => [cycleNumber, status, shopifyId]);
}

/** Moves the clock by some weeks. */
function wait({ test: program }: ConnectedShop, weeks: number): void {
  program.clock.ms += weeks * WEEK_MS;
}

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
    // A mirror that is made anew has the same ids.
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

test("a cycle that is left out between two renewals has no number", async () => {
  const { all, contract } = await weekly();
  wait(all, 2);
  const first = charge(all, contract, 1);
  wait(all, 2);
  const second = charge(all, contract, 4);
  await all.deliverAll();
  expect(await renewals(all)).toEqual([
    [1, "PAID", first],
    [2, "PAID", second],
  ]);
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

test("a mirror of an earlier version keeps its numbers: each is the number of its cycle", async () => {
  const { all, contract } = await weekly();
  wait(all, 1);
  const second = charge(all, contract, 2);
  await all.deliverAll();
  // As an earlier version numbered it.
  const { mirror } = all.test.app.store;
  const money = { lines: [], subtotalCents: 100, discountCents: 0, creditsCents: 0 };
  const billed = { status: "PAID" as const, billedAt: new Date(all.test.clock.ms).toISOString() };
  const ids = { type: "order" as const, subscription: contract, source: "recurring" as const };
  const other = all.createContract({ interval: "WEEK", lines: [LINE], originOrder: false });
  await all.deliverAll();
  const record = { ...ids, subscription: other, cycleNumber: 2, shopifyId: null, ...money, ...billed };
  await mirror.applyRecords([{ shop: all.shop.shop, records: [record] }], 0, []);
  wait(all, 3);
  const third = charge(all, other, 3);
  await all.deliverAll();
  const ofOther = (await renewals(all)).filter(([, , gid]) => gid !== second);
  expect(ofOther).toEqual([
    [2, "PAID", null],
    [3, "PAID", third],
  ]);
});

test("an order that the intake reported with its number keeps this number", async () => {
  const { all, contract } = await weekly();
  wait(all, 1);
  const gid = charge(all, contract, 2);
  const money = { lines: [], subtotalCents: 100, discountCents: 0, creditsCents: 0 };
  const record = {
    type: "order" as const,
    subscription: contract,
    source: "recurring" as const,
    cycleNumber: 1,
    shopifyId: gid,
    status: "PAID" as const,
    billedAt: new Date(all.test.clock.ms).toISOString(),
    ...money,
  };
  await all.test.app.store.mirror.applyRecords([{ shop: all.shop.shop, records: [record] }], 0, []);
  await all.deliverAll();
  wait(all, 1);
  const next = charge(all, contract, 3);
  await all.deliverAll();
  expect(await renewals(all)).toEqual([
    [1, "PAID", gid],
    [2, "PAID", next],
  ]);
});
