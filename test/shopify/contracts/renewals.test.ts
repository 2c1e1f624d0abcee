import { describe, expect, test } from "bun:test";
import type { Submission } from "../../../src/domain/decide/commit.ts";
import type { BillingAttempt } from "../../../src/domain/records/platform-records.ts";
import {
  type ConnectedShop,
  connected,
  connectedTo,
  HOUR_MS,
  LINE,
  withMirroredContract,
} from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";

const WEEK_MS = 7 * 24 * HOUR_MS;

/** A contract with weekly cycles. The mirror has the contract. */
function weekly() {
  return withMirroredContract({ interval: "WEEK", lines: [LINE], originOrder: false });
}

function charge({ remote }: ConnectedShop, contract: string, cycle: number): string {
  return remote.succeedAttempt(remote.startAttempt(contract, cycle));
}

/** Returns the number, the status and the gid of each order, by ascending number. */
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

/** Copies attempts for another cycle. Each copy starts a second later, and a copied charge names a different order. */
function otherCycle(attempts: readonly BillingAttempt[]) {
  return {
    attempts: attempts.map((attempt) => ({
      ...attempt,
      startedAt: new Date(Date.parse(attempt.startedAt) + 1_000).toISOString(),
      outcome:
        attempt.outcome.kind === "charged"
          ? { ...attempt.outcome, order: { ...attempt.outcome.order, shopifyId: "gid://shopify/Order/3" } }
          : attempt.outcome,
    })),
  };
}

/** Stores orders as an earlier version did: each order has the number of its cycle. */
async function storeAsBefore(
  { test: { app, clock }, shop }: ConnectedShop,
  contract: string,
  gids: [number, string][],
) {
  const money = { lines: [], subtotalCents: 100, discountCents: 0, creditsCents: 0 };
  const billed = { status: "PAID" as const, billedAt: new Date(clock.ms).toISOString() };
  const ids = { type: "order" as const, subscription: contract, source: "recurring" as const };
  const records = gids.map(([cycleNumber, shopifyId]) => ({ ...ids, cycleNumber, shopifyId, ...money, ...billed }));
  await app.store.mirror.applyRecords([{ shop: shop.shop, records }], 0, []);
}

/** Waits for the load that a program runs after its start. Otherwise the load may run while the test charges cycles. */
async function firstLoad({ test: { app }, shop }: ConnectedShop): Promise<void> {
  await eventually(async () => {
    await app.firstLoader.runOnce();
    return (await app.store.syncs.lastComplete(shop.shop.id, "full")) !== undefined;
  });
}

describe.each(hasPostgres() ? ["SQLite", "PostgreSQL"] : ["SQLite"])("on %s", (engine) => {
  /**
   * Uses the real clock, because on PostgreSQL the program compares its clock with the server's clock. So the tests
   * charge each cycle before it is due.
   */
  async function weeklyOnEngine() {
    const env = engine === "SQLite" ? {} : { SDS_DATABASE_URL: await emptyDatabase() };
    const { platform } = await connected({}, { now: Date.now });
    const all = await connectedTo(platform, env, Date.now());
    // On PostgreSQL, a program works for shops only as a node. Its start makes it a node.
    await all.test.app.start();
    await firstLoad(all);
    const contract = all.createContract({ interval: "WEEK", lines: [LINE], originOrder: false });
    return { all, contract };
  }

  const hasCycle = (submissions: readonly Submission[]) =>
    submissions.some(({ records }) => records.some(({ type }) => type === "billing_cycle"));
  const ids = async ({ shop }: ConnectedShop) => (await shop.all("orders")).map(({ id, shopifyId }) => [shopifyId, id]);

  test("a mirror of an earlier version keeps its numbers and ids, and new ones continue", async () => {
    const { all, contract } = await weeklyOnEngine();
    await all.load();
    const [second, third] = [charge(all, contract, 2), charge(all, contract, 3)];
    await storeAsBefore(all, contract, [
      [2, second],
      [3, third],
    ]);
    const before = await ids(all);
    await all.load();
    const fourth = charge(all, contract, 4);
    await all.load();
    expect(await renewals(all)).toEqual([
      [2, "PAID", second],
      [3, "PAID", third],
      [4, "PAID", fourth],
    ]);
    expect(await ids(all)).toEqual(expect.arrayContaining(before));
  });

  test("a cycle that is seen late gets the next number, and the number that was served stays", async () => {
    const { all, contract } = await weeklyOnEngine();
    const third = charge(all, contract, 3);
    await all.load();
    expect(await renewals(all)).toEqual([[1, "PAID", third]]);
    const before = await ids(all);
    const [second, fourth] = [charge(all, contract, 2), charge(all, contract, 4)];
    await all.load();
    expect(await renewals(all)).toEqual([
      [1, "PAID", third],
      [2, "PAID", second],
      [3, "PAID", fourth],
    ]);
    expect(await ids(all)).toEqual(expect.arrayContaining(before));
  });

  test("a number that another process gave to another cycle meanwhile stays", async () => {
    const { all, contract } = await weeklyOnEngine();
    const second = charge(all, contract, 2);
    const { mirror } = all.test.app.store;
    const { applyRecords } = mirror;
    // The other process read only cycle 3. It stores this cycle after this program's reading, and before this program's
    // commit.
    mirror.applyRecords = async (submissions, ...rest) => {
      if (!hasCycle(submissions)) return applyRecords(submissions, ...rest);
      mirror.applyRecords = applyRecords;
      const other = submissions.map(({ shop, records, reads = [] }) => ({
        shop,
        records: records.map((record) =>
          record.type === "billing_cycle" ? { ...record, ...otherCycle(record.attempts) } : record,
        ),
        reads: reads.map((read) => ({ ...read, renewals: [[1, 3] as const] })),
      }));
      await applyRecords(other, ...rest);
      return applyRecords(submissions, ...rest);
    };
    await all.load();
    const before = await ids(all);
    await all.load();
    expect(await renewals(all)).toMatchObject([
      [1, "PAID", "gid://shopify/Order/3"],
      [2, "PAID", second],
    ]);
    expect(await ids(all)).toEqual(expect.arrayContaining(before));
  });

  test("a reading between two commits of another process queues no event again", async () => {
    const { all, contract } = await weeklyOnEngine();
    await all.load();
    await all.queueAllEvents();
    all.remote.failAttempt(all.remote.startAttempt(contract, 2));
    const { mirror } = all.test.app.store;
    const before = await mirror.contractReads(all.shop.shop, [contract]);
    await all.load({ events: true });
    // This reading has the cycles from before the other process's commit, and the orders from after it.
    const { contractReads } = mirror;
    mirror.contractReads = async () => {
      mirror.contractReads = contractReads;
      return before;
    };
    await all.load({ events: true });
    await all.load({ events: true });
    expect(await renewals(all)).toEqual([[1, "FAILED", null]]);
    expect((await all.queuedTopics()).filter((topic) => topic === "order.failed")).toHaveLength(1);
  });

  test("an older reading of another process leaves the cycles of served numbers as they are", async () => {
    const { all, contract } = await weeklyOnEngine();
    await all.load();
    all.remote.failAttempt(all.remote.startAttempt(contract, 2));
    const { mirror } = all.test.app.store;
    const { applyRecords } = mirror;
    // The other process read the contract before the attempt, and stores this reading after ours.
    mirror.applyRecords = async (submissions, ...rest) => {
      if (!hasCycle(submissions)) return applyRecords(submissions, ...rest);
      mirror.applyRecords = applyRecords;
      const results = await applyRecords(submissions, ...rest);
      const older = submissions.map(({ shop, reads = [] }) => ({
        shop,
        records: [],
        reads: reads.map((read) => ({ ...read, renewals: [] })),
      }));
      await applyRecords(older, ...rest);
      return results;
    };
    await all.load();
    await all.load();
    expect(await renewals(all)).toEqual([[1, "FAILED", null]]);
    const order = charge(all, contract, 2);
    await all.load();
    expect(await renewals(all)).toEqual([[1, "RECOVERED", order]]);
  });
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
