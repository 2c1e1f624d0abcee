import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  answerWith,
  type ConnectedShop,
  connected,
  connectedTo,
  LINE,
  withContract,
  withMirroredContract,
} from "../../support/connected.ts";
import { pageOfNodes } from "../../support/platform-nodes.ts";
import { readRows } from "../../support/rows.ts";
import { DAY_MS, loadLater, MARCH, nextBillingDate, orderOf, pointsOf } from "./billed.ts";

describe.each(["webhooks", "a load"])("with %s, the next billing date", (source) => {
  async function bring(all: ConnectedShop): Promise<void> {
    if (source === "a load") await loadLater(all);
    else await all.deliverAll();
  }

  test("is the next cycle's date, even if no app writes a date into the contract", async () => {
    const { all, contract } = await withContract({ interval: "WEEK", setsNextBillingDate: false });
    await bring(all);
    expect(await nextBillingDate(all)).toBe("2026-03-08T12:00:00.000Z");
    all.test.clock.ms = Date.parse(MARCH) + 7 * DAY_MS;
    all.remote.succeedAttempt(all.remote.startAttempt(contract, 1));
    await bring(all);
    expect(await nextBillingDate(all)).toBe("2026-03-15T12:00:00.000Z");
  });

  test("is not the date of a skipped cycle", async () => {
    const { all, contract } = await withContract({ interval: "WEEK", setsNextBillingDate: false });
    all.remote.skipCycle(contract, 1);
    await bring(all);
    expect(await nextBillingDate(all)).toBe("2026-03-15T12:00:00.000Z");
  });

  test("is the edited date of a cycle", async () => {
    const { all, contract } = await withContract({ interval: "WEEK", setsNextBillingDate: false });
    all.remote.editCycle(contract, 1, undefined, "2026-03-10T00:00:00Z");
    await bring(all);
    expect(await nextBillingDate(all)).toBe("2026-03-10T00:00:00.000Z");
  });

  test("is the date that the app wrote if it lies after the start of the next cycle", async () => {
    const { all, contract } = await withContract({ interval: "WEEK" });
    all.remote.updateContract(contract, { nextBillingDate: "2026-04-20T00:00:00Z" });
    await bring(all);
    expect(await nextBillingDate(all)).toBe("2026-04-20T00:00:00.000Z");
    all.remote.updateContract(contract, { nextBillingDate: "2026-02-20T00:00:00Z" });
    await bring(all);
    expect(await nextBillingDate(all)).toBe("2026-03-08T12:00:00.000Z");
  });

  test("is the current cycle's date after a long pause", async () => {
    const { all, contract } = await withContract({ interval: "WEEK", setsNextBillingDate: false });
    all.remote.pause(contract);
    await bring(all);
    all.test.clock.ms += 100 * 7 * DAY_MS;
    all.remote.activate(contract);
    await bring(all);
    const ahead = Date.parse(String(await nextBillingDate(all))) - all.test.clock.ms;
    // The cycles of the last weeks may still be charged, so the date can lie some weeks in the past.
    expect(ahead).toBeGreaterThan(-40 * DAY_MS);
    expect(ahead).toBeLessThan(7 * DAY_MS);
  });
});

describe("a load of a contract whose attempts were all successful", () => {
  /** Loads a weekly contract, `day` days after its start. The charge `2@14` is of cycle 2, 14 days after the start. */
  async function loadedAfter(charges: `${number}@${number}`[], day: number): Promise<ConnectedShop> {
    const { all, contract } = await withContract({ interval: "WEEK", setsNextBillingDate: false });
    for (const charge of charges) {
      const [cycle = 0, chargedAfter = 0] = charge.split("@").map(Number);
      all.test.clock.ms = Date.parse(MARCH) + chargedAfter * DAY_MS;
      all.remote.succeedAttempt(all.remote.startAttempt(contract, cycle));
    }
    all.test.clock.ms = Date.parse(MARCH) + day * DAY_MS;
    await loadLater(all);
    return all;
  }

  async function renewalsOf({ shop }: ConnectedShop): Promise<unknown[]> {
    const numbers = (await shop.all("orders")).map(({ cycleNumber }) => Number(cycleNumber));
    return numbers.filter((number) => number > 0).toSorted((a, b) => a - b);
  }

  test("finds the cycle of a charge after cycles that nobody charged", async () => {
    const all = await loadedAfter(["1@7", "5@35"], 36);
    expect(await renewalsOf(all)).toEqual([1, 2]);
    expect(await nextBillingDate(all)).toBe("2026-04-12T12:00:00.000Z");
  });

  test("does not count a cycle that was charged twice as two", async () => {
    const all = await loadedAfter(["1@7", "1@7.5", "2@14"], 15);
    expect(await renewalsOf(all)).toEqual([1, 2]);
    expect(await nextBillingDate(all)).toBe("2026-03-22T12:00:00.000Z");
  });
});

describe("an order of several contracts", () => {
  const cup = { ...LINE, title: "Cup", price: "8.00", quantity: 1, variant: "gid://shopify/ProductVariant/3" };

  test("counts for each contract with its own lines, whether a webhook or a load brings it", async () => {
    const all = await connected();
    const customer = all.remote.createCustomer({ email: "ada@example.com" });
    const [first = "", second = ""] = all.remote.createContracts([
      { customer, lines: [LINE] },
      { customer, lines: [cup] },
    ]);
    await all.deliverAll();
    all.remote.succeedAttempts([first, second].map((contract) => all.remote.startAttempt(contract, 1)));
    await all.deliverAll();
    all.test.clock.ms += 60_000;
    const loaded = await connectedTo(all.platform, {}, all.test.clock.ms);
    await loaded.load();
    for (const each of [all, loaded]) {
      for (const cycle of [0, 1]) {
        expect(await orderOf(each, cycle, first)).toMatchObject({
          totalCents: 2500,
          lines: [{ title: "House blend" }],
        });
        expect(await orderOf(each, cycle, second)).toMatchObject({ totalCents: 800, lines: [{ title: "Cup" }] });
      }
    }
  });

  test("counts a line without a contract only if no line names the contract", async () => {
    const { all, contract } = await withContract();
    const order = all.remote.originOrder(contract) ?? "";
    await all.deliverAll();
    expect(await orderOf(all, 0)).toMatchObject({ shopifyId: order, totalCents: 2500 });
  });
});

describe.each(["VOIDED", "EXPIRED"] as const)("a checkout that is %s", (financialStatus) => {
  test("before its first reading is UNCOLLECTIBLE, without an event of a failed payment", async () => {
    const all = await connected();
    await all.queueAllEvents();
    const contract = all.createContract();
    all.remote.updateOrder(all.remote.originOrder(contract) ?? "", { financialStatus });
    await all.deliverAll();
    expect(await orderOf(all, 0)).toMatchObject({ status: "UNCOLLECTIBLE", shopifyId: null, totalCents: 2500 });
    expect(await all.queuedTopics()).not.toContain("order.failed");
  });

  test("after it was PENDING is UNCOLLECTIBLE, and PAID once it is charged", async () => {
    const { all, contract } = await withContract();
    const order = all.remote.originOrder(contract) ?? "";
    for (const [next, status] of [
      ["PENDING", "PENDING"],
      [financialStatus, "UNCOLLECTIBLE"],
      ["PAID", "PAID"],
    ] as const) {
      all.remote.updateOrder(order, { financialStatus: next });
      await all.deliverAll();
      expect(await orderOf(all, 0)).toMatchObject({ status });
      all.test.clock.ms += 60_000;
    }
  });
});

test("an edited cycle expects what its own lines cost", async () => {
  const all = await connected();
  await all.queueAllEvents();
  const contract = all.createContract();
  all.remote.editCycle(contract, 1, [LINE, { ...LINE, price: "5.00", quantity: 1 }]);
  all.remote.failAttempt(all.remote.startAttempt(contract, 1));
  await all.deliverAll();
  expect(await orderOf(all, 1)).toMatchObject({ status: "FAILED", totalCents: 3000 });
  const failed = readRows(join(all.test.folder, "data"), "deliveries").find(({ topic }) => topic === "order.failed");
  expect(JSON.parse(String(failed?.["body"])).data).toMatchObject({ total_cents: 3000 });
});

test.each([2, 90])("a charge of cycle %p that counted as settled is found by its order", async (cycle) => {
  const { all, contract } = await withContract({ interval: "WEEK", setsNextBillingDate: false });
  all.remote.pause(contract);
  await all.deliverAll();
  all.test.clock.ms += 100 * 7 * DAY_MS;
  all.remote.activate(contract);
  await all.deliverAll();
  const before = await nextBillingDate(all);
  const order = all.remote.succeedAttempt(all.remote.startAttempt(contract, cycle));
  await all.deliverAll();
  expect(await orderOf(all, 1)).toMatchObject({ status: "PAID", shopifyId: order });
  // This charge does not change the other cycles: they still count as settled, so the next billing date stays.
  expect(await nextBillingDate(all)).toBe(before);
});

describe("a platform webhook costs at most 25 points", () => {
  async function pointsAfter(weeks: number, end: (all: ConnectedShop, contract: string) => void): Promise<number> {
    const { all, contract } = await withMirroredContract({ interval: "WEEK", lines: [LINE] });
    for (const cycle of [1, 2]) {
      all.test.clock.ms += 7 * DAY_MS;
      all.remote.succeedAttempt(all.remote.startAttempt(contract, cycle));
      await all.deliverAll();
    }
    end(all, contract);
    await all.deliverAll();
    all.test.clock.ms += weeks * 7 * DAY_MS;
    all.remote.updateContract(contract, { lines: [LINE] });
    return pointsOf(all, all.deliverAll);
  }

  test("for a contract that was paused 100 weeks ago", async () => {
    expect(await pointsAfter(100, ({ remote }, contract) => remote.pause(contract))).toBeLessThanOrEqual(25);
  });

  test("for a contract that was cancelled three years ago", async () => {
    expect(await pointsAfter(156, ({ remote }, contract) => remote.cancel(contract))).toBeLessThanOrEqual(25);
  });
});

test("a changed order that is charged reads its own cycle, and not all cycles since", async () => {
  const { all, contract } = await withMirroredContract({ interval: "WEEK" });
  const orders: string[] = [];
  for (let cycle = 1; cycle <= 20; cycle += 1) {
    all.test.clock.ms += 7 * DAY_MS;
    orders.push(all.remote.succeedAttempt(all.remote.startAttempt(contract, cycle)));
  }
  await all.deliverAll();
  all.test.clock.ms += 60_000;
  all.remote.updateOrder(orders[1] ?? "", { lines: [{ ...LINE, price: "10.00" }] });
  const begun = all.platform.requests.length;
  await all.deliverAll();
  expect(await orderOf(all, 2)).toMatchObject({ totalCents: 2000 });
  expect(all.operations(begun).filter((name) => name === "BillingCycles")).toHaveLength(2);
});

test.each([
  [{ cycleIndex: 1, cycleStartAt: null }, "the platform sent an invalid date"],
  [{ cycleIndex: 1, billingAttemptExpectedDate: "soon" }, "the platform sent an invalid date"],
  [{ cycleIndex: 0 }, "the platform sent a billing cycle without a number"],
])("a contract with a billing cycle like %j waits in the inbox, and is not read for ever", async (fields, error) => {
  const { all } = await withContract();
  const cycle = {
    status: "UNBILLED",
    skipped: false,
    edited: false,
    cycleStartAt: MARCH,
    billingAttemptExpectedDate: MARCH,
    billingAttempts: pageOfNodes([]),
    ...fields,
  };
  all.replaceAnswers("BillingCycles", answerWith({ subscriptionBillingCycles: { nodes: [cycle] } }));
  await all.deliverAll();
  const waiting = await all.inbox();
  expect(waiting.map((item) => item.error).join()).toContain(error);
});

test("contracts without any known customer do not end a load", async () => {
  const all = await connected();
  for (let n = 0; n < 2; n += 1) {
    const customer = all.remote.createCustomer();
    all.createContract({ customer });
    all.remote.deleteCustomer(customer);
  }
  const counts = await loadLater(all);
  expect(counts).toMatchObject({ subscriptions: 0, skipped: 2 });
});
