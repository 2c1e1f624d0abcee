import { describe, expect, test } from "bun:test";
import { LINE, withContract } from "../../support/connected.ts";
import { DAY_MS, MARCH, nextBillingDate, orderOf, pointsOf } from "./billed.ts";

describe("a charge ahead of open cycles", () => {
  /** A contract with one charged cycle, and charges of other cycles whose webhooks were not delivered yet. */
  async function chargedEarly(weeks: number, cycles: number[], interval: "DAY" | "WEEK" = "WEEK") {
    const { all, contract } = await withContract({ interval, setsNextBillingDate: false });
    all.test.clock.ms += 7 * DAY_MS;
    all.remote.succeedAttempt(all.remote.startAttempt(contract, 1));
    await all.deliverAll();
    all.test.clock.ms += weeks * 7 * DAY_MS + 60_000;
    const orders = cycles.map((cycle) => all.remote.succeedAttempt(all.remote.startAttempt(contract, cycle)));
    return { all, contract, orders };
  }

  test.each([5, 13])("is found by its order, for cycle %p", async (cycle) => {
    const { all, contract, orders } = await chargedEarly(0, [cycle]);
    await all.deliverAll();
    all.test.clock.ms += 60_000;
    all.remote.succeedAttempt(all.remote.startAttempt(contract, 2));
    await all.deliverAll();
    expect(await orderOf(all, 2)).toMatchObject({ status: "PAID", shopifyId: orders[0] });
    expect(await orderOf(all, 3)).toMatchObject({ status: "PAID" });
    const due = Date.parse(MARCH) + (cycle + 1) * 7 * DAY_MS;
    expect(await nextBillingDate(all)).toBe(new Date(due).toISOString());
  });

  test("is found if the contract has ended since", async () => {
    const { all, contract, orders } = await chargedEarly(0, [5]);
    all.remote.cancel(contract);
    await all.deliverAll();
    expect(await orderOf(all, 2)).toMatchObject({ status: "PAID", shopifyId: orders[0] });
  });

  test("is found together with one that counted as settled", async () => {
    const { all, orders } = await chargedEarly(100, [2, 112]);
    await all.deliverAll();
    expect(await orderOf(all, 2)).toMatchObject({ status: "PAID", shopifyId: orders[0] });
    expect(await orderOf(all, 3)).toMatchObject({ status: "PAID", shopifyId: orders[1] });
  });

  test("is found if it is not early, even if more cycles are open than are searched ahead", async () => {
    const { all, orders } = await chargedEarly(3, [28], "DAY");
    await all.deliverAll();
    expect(await orderOf(all, 2)).toMatchObject({ status: "PAID", shopifyId: orders[0] });
  });

  test.each(["active", "cancelled"])("is searched for in one query if the order is in no cycle: %s", async (status) => {
    const { all, contract } = await chargedEarly(0, []);
    if (status === "cancelled") all.remote.cancel(contract);
    await all.deliverAll();
    all.test.clock.ms += 60_000;
    const begun = all.platform.requests.length;
    all.remote.updateContract(contract, { lines: [LINE] });
    const order = "gid://shopify/Order/987654321";
    const body = { admin_graphql_api_subscription_contract_id: contract, admin_graphql_api_order_id: order };
    const webhooks = all.remote.outgoing.splice(0).map((webhook) => ({
      ...webhook,
      topic: "subscription_billing_attempts/success",
      body: JSON.stringify(body),
    }));
    all.remote.outgoing.push(...webhooks);
    const points = await pointsOf(all, all.deliverAll);
    expect(all.operations(begun).filter((name) => name === "BillingCycles")).toHaveLength(2);
    expect(points).toBeLessThanOrEqual(30);
  });
});
