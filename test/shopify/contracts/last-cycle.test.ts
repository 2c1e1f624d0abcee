import { describe, expect, test } from "bun:test";
import { answerWith, type ConnectedShop, connected, connectedTo, HOUR_MS, LINE } from "../../support/connected.ts";
import type { ContractInput } from "../../support/platform/contract-changes.ts";
import { nextBillingDate } from "./billed.ts";
import { charge, renewals, WEEK_MS, wait } from "./renewing.ts";

const MODES = ["listed", "cut", "refused", "null"] as const;

type Mode = (typeof MODES)[number];

/** A shop with a weekly contract of three cycles. `mode` says what the platform answers for later cycles. */
async function ending(mode: Mode, fields: Partial<ContractInput> = {}) {
  const all = await connected();
  all.remote.cyclesAfterEnd = mode;
  const contract = all.createContract({ interval: "WEEK", maxCycles: 3, lines: [LINE], originOrder: false, ...fields });
  await all.deliverAll();
  return { all, contract };
}

/** Returns the number and the status of each order, by ascending number. */
async function statuses(all: ConnectedShop) {
  return (await renewals(all)).map(([number, status]) => [number, status]);
}

/** Loads the shop into an empty mirror. */
async function loadedAnew({ platform, test: { clock } }: ConnectedShop): Promise<ConnectedShop> {
  const fresh = await connectedTo(platform, {}, clock.ms + HOUR_MS);
  await fresh.load();
  expect(await fresh.inbox()).toEqual([]);
  return fresh;
}

/**
 * Reads subscriptions and orders. Leaves out customers, because their rows have the time when this mirror first saw
 * them.
 */
async function rows({ shop }: ConnectedShop) {
  return [await shop.all("subscriptions"), await shop.all("orders")];
}

describe.each(MODES)("a contract with an end, with later cycles %s", (mode) => {
  test.each(["webhooks", "reconciliations"])("is mirrored by %s up to its last cycle", async (source) => {
    const { all, contract } = await ending(mode);
    await all.load();
    const dates: unknown[] = [await nextBillingDate(all)];
    for (const cycle of [1, 2, 3]) {
      wait(all, 1);
      charge(all, contract, cycle);
      if (source === "reconciliations") {
        all.remote.outgoing.length = 0;
        all.test.clock.ms += 1_000;
        expect(await all.reconcile()).toMatchObject({ skipped: 0 });
      } else await all.deliverAll();
      dates.push(await nextBillingDate(all));
      expect(await rows(await loadedAnew(all))).toEqual(await rows(all));
    }
    const days = dates.map((date) => date && String(date).slice(0, 10));
    expect(days).toEqual(["2026-03-08", "2026-03-15", "2026-03-22", null]);
    expect(await statuses(all)).toEqual([
      [1, "PAID"],
      [2, "PAID"],
      [3, "PAID"],
    ]);
    expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "ACTIVE", cyclesCompleted: 3 }]);
    expect(await all.inbox()).toEqual([]);
  });

  test("stays without a next billing date, and a change of an old order is read", async () => {
    const { all, contract } = await ending(mode);
    const orders = [1, 2, 3].map((cycle) => charge(all, contract, cycle));
    await all.deliverAll();
    wait(all, 60);
    all.remote.updateOrder(orders[1] ?? "", { lines: [{ ...LINE, price: "10.00" }] });
    all.remote.updateContract(contract, { lines: [LINE] });
    await all.deliverAll();
    expect(await nextBillingDate(all)).toBeNull();
    const second = (await all.shop.all("orders")).find(({ cycleNumber }) => cycleNumber === 2);
    expect(second).toMatchObject({ totalCents: 2000, shopifyId: orders[1] });
    all.remote.expire(contract);
    await all.deliverAll();
    expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "EXPIRED", nextBillingDate: null }]);
    expect(await all.inbox()).toEqual([]);
  });

  test("whose last cycle was skipped has no next billing date", async () => {
    const { all, contract } = await ending(mode, { maxCycles: 2 });
    wait(all, 1);
    charge(all, contract, 1);
    all.remote.skipCycle(contract, 2);
    all.remote.skipCycle(contract, 3);
    await all.deliverAll();
    expect(await nextBillingDate(all)).toBeNull();
    const numbered = [
      [1, "PAID"],
      [2, "SKIPPED"],
    ];
    expect(await statuses(all)).toEqual(numbered);
    expect(await statuses(await loadedAnew(all))).toEqual(numbered);
  });

  test("whose last cycle was declined is due until the cycle is settled", async () => {
    const { all, contract } = await ending(mode, { maxCycles: 1 });
    wait(all, 1);
    all.remote.failAttempt(all.remote.startAttempt(contract, 1));
    await all.deliverAll();
    expect(await nextBillingDate(all)).toStartWith("2026-03-08");
    wait(all, 20);
    all.remote.updateContract(contract, { lines: [LINE] });
    await all.deliverAll();
    expect(await nextBillingDate(all)).toBeNull();
    const order = charge(all, contract, 1);
    await all.deliverAll();
    expect(await all.shop.all("orders")).toMatchObject([{ cycleNumber: 1, status: "RECOVERED", shopifyId: order }]);
    expect(await nextBillingDate(all)).toBeNull();
  });

  test("that was paused beyond its end has no next billing date, and the orders that it had", async () => {
    const { all, contract } = await ending(mode, { maxCycles: 12, setsNextBillingDate: false });
    wait(all, 1);
    charge(all, contract, 1);
    all.remote.pause(contract);
    await all.deliverAll();
    wait(all, 100);
    all.remote.activate(contract);
    await all.deliverAll();
    expect(await nextBillingDate(all)).toBeNull();
    expect(await statuses(all)).toEqual([[1, "PAID"]]);
    expect(await rows(await loadedAnew(all))).toEqual(await rows(all));
  });

  test("that is billed from its second cycle on ends with the same cycle", async () => {
    const { all, contract } = await ending(mode);
    wait(all, 2);
    charge(all, contract, 2);
    await all.deliverAll();
    expect(await nextBillingDate(all)).toStartWith("2026-03-22");
    wait(all, 1);
    charge(all, contract, 3);
    await all.deliverAll();
    expect(await nextBillingDate(all)).toBeNull();
    expect(await statuses(all)).toEqual([
      [1, "PAID"],
      [2, "PAID"],
    ]);
    expect(await rows(await loadedAnew(all))).toEqual(await rows(all));
  });

  test("an order that belongs to no cycle of it costs no further queries", async () => {
    const { all, contract } = await ending(mode);
    for (const cycle of [1, 2, 3]) charge(all, contract, cycle);
    await all.deliverAll();
    wait(all, 1);
    all.remote.updateContract(contract, { lines: [LINE] });
    const begun = all.platform.requests.length;
    const body = {
      admin_graphql_api_subscription_contract_id: contract,
      admin_graphql_api_order_id: "gid://shopify/Order/987654321",
    };
    const topic = "subscription_billing_attempts/success";
    for (const webhook of all.remote.outgoing.splice(0))
      await all.send({ ...webhook, topic, body: JSON.stringify(body) });
    await all.processed();
    const queries = all.operations(begun).filter((name) => name.startsWith("BillingCycles"));
    // If the platform refuses cycles, the program repeats the first query for fewer cycles.
    expect(queries.length).toBeLessThanOrEqual(2);
  });
});

test("a cycle that is charged after the end is mirrored if the platform shows it", async () => {
  const { all, contract } = await ending("listed");
  for (const cycle of [1, 2, 3, 4, 5]) {
    wait(all, 1);
    charge(all, contract, cycle);
    if (cycle < 5) await all.deliverAll();
  }
  await all.deliverAll();
  expect(await renewals(all)).toHaveLength(5);
  expect(await nextBillingDate(all)).toBeNull();
  expect(await rows(await loadedAnew(all))).toEqual(await rows(all));
});

describe("cycles too far ahead that the platform refuses", () => {
  /** Refuses queries for cycles after the fifth. */
  function refuseFar({ platform }: ConnectedShop): void {
    const errors = [{ message: "Too far ahead.", extensions: { code: "UPCOMING_CYCLE_LIMIT_EXCEEDED" } }];
    platform.fault = ({ variables }) => (Number(variables["to"]) > 5 ? answerWith(null, errors) : undefined);
  }

  test("shorten the range, and the cycles before are mirrored", async () => {
    const { all, contract } = await ending("listed", { maxCycles: null });
    refuseFar(all);
    for (const cycle of [1, 2, 3, 4]) {
      wait(all, 1);
      charge(all, contract, cycle);
      await all.deliverAll();
      expect(await nextBillingDate(all)).toStartWith(new Date(all.test.clock.ms + WEEK_MS).toISOString().slice(0, 10));
    }
    expect(await renewals(all)).toHaveLength(4);
    expect(await all.inbox()).toEqual([]);
  });

  test("are an error if they are the first ones: the contract waits in the inbox", async () => {
    const { all, contract } = await ending("listed", { maxCycles: null });
    for (const cycle of [1, 2, 3, 4, 5]) charge(all, contract, cycle);
    await all.deliverAll();
    refuseFar(all);
    all.remote.pause(contract);
    await all.deliverAll();
    expect(await all.inbox()).not.toEqual([]);
    all.platform.fault = () => undefined;
    await all.processedAfter(HOUR_MS);
    expect(await all.inbox()).toEqual([]);
    expect(await all.shop.all("subscriptions")).toMatchObject([{ status: "PAUSED" }]);
  });
});
