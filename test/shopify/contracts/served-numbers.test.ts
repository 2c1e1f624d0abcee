import { describe, expect, test } from "bun:test";
import type { Submission } from "../../../src/domain/decide/commit.ts";
import type { BillingAttempt } from "../../../src/domain/records/platform-records.ts";
import { type ConnectedShop, connected, connectedTo, LINE } from "../../support/connected.ts";
import { eventually } from "../../support/eventually.ts";
import { emptyDatabase, hasPostgres } from "../../support/postgres-server.ts";
import { charge, renewals, storeAsBefore } from "./renewing.ts";

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
