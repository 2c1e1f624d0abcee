import { describe, expect, test } from "bun:test";
import { HOUR_MS, seeded, seededAndLoaded } from "../support/connected.ts";

const MINUTE_MS = 60_000;

describe("an object in a list that always fails is left out", () => {
  test("if a customer fails, and its entry in the inbox reads it later", async () => {
    const all = await seededAndLoaded({ contracts: 20, linesEach: 1 });
    const [, bad = "", other = ""] = all.remote.ids("customer");
    all.remote.breakField(bad, "Customer.lastName");
    for (const id of [bad, other]) all.remote.updateCustomer(id, { lastName: "Byron" });
    expect(await all.reconcile()).toMatchObject({ skipped: 1 });
    expect(await all.reconcile()).toMatchObject({ skipped: 1 });
    expect(await all.inbox()).toMatchObject([{ topic: "customers/update", subject: `reading of ${bad}` }]);
    const names = async () =>
      (await all.shop.all("customers")).flatMap((row) => (row["lastName"] === "Byron" ? [row["shopifyId"]] : []));
    expect(await names()).toEqual([other]);
    all.remote.breakField(bad, "Customer.lastName", null);
    await all.processedAfter(MINUTE_MS);
    expect((await names()).toSorted()).toEqual([bad, other].toSorted());
    expect(await all.inbox()).toEqual([]);
  });

  test.each(["Order.updatedAt", "Order.displayFinancialStatus"])("if %s of an order fails", async (field) => {
    const all = await seededAndLoaded({ contracts: 20, linesEach: 1, renewals: 1 });
    const bad = all.remote.originOrder(all.remote.ids("contract")[3] ?? "") ?? "";
    all.remote.breakField(bad, field);
    all.remote.updateOrder(bad, { lines: [{ title: "Tea", price: "3.00" }] });
    all.remote.pause(all.remote.ids("contract")[7] ?? "");
    await all.reconcile();
    expect(await all.shop.all("subscriptions")).toContainEqual(expect.objectContaining({ status: "PAUSED" }));
    expect(await all.inbox()).toHaveLength(1);
    all.remote.mendFields();
    await all.processedAfter(MINUTE_MS);
    expect(await all.shop.all("orders")).toContainEqual(expect.objectContaining({ totalCents: 300 }));
  });

  test("if an order fails, also after its contract was read without it", async () => {
    const all = await seededAndLoaded({ contracts: 5, linesEach: 1, renewals: 1 });
    const contract = all.remote.ids("contract")[3] ?? "";
    const order = all.remote.originOrder(contract) ?? "";
    all.remote.breakField(order, "Order.updatedAt");
    all.remote.updateOrder(order, { lines: [{ title: "Tea", price: "3.00" }] });
    await all.reconcile();
    expect(await all.inbox()).toMatchObject([{ subject: contract }]);
    all.test.clock.ms += HOUR_MS;
    all.remote.pause(contract);
    await all.reconcile();
    expect(await all.shop.all("subscriptions")).toContainEqual(expect.objectContaining({ status: "PAUSED" }));
    all.remote.mendFields();
    await all.processedAfter(HOUR_MS);
    expect(await all.inbox()).toEqual([]);
    expect(await all.shop.all("orders")).toContainEqual(expect.objectContaining({ totalCents: 300 }));
  });

  test("if an attempt fails, and its contract is read", async () => {
    const all = await seededAndLoaded({ contracts: 20, linesEach: 1, renewals: 1 });
    const attempt = all.remote.startAttempt(all.remote.ids("contract")[3] ?? "", 2);
    all.remote.breakField(attempt, "SubscriptionBillingAttempt.createdAt");
    expect(await all.reconcile()).toMatchObject({ skipped: 1 });
    expect(await all.inbox()).toHaveLength(1);
  });
});

describe.each([true, false])(
  "an object of which not even the gid can be read (errors with paths: %p)",
  (errorPaths) => {
    test.each([
      ["contract", "SubscriptionContract.id", { customers: 5, subscriptions: 4 }],
      ["customer", "Customer.id", { customers: 4, subscriptions: 4 }],
    ] as const)("is left out by a load, if it is a %s", async (kind, field, counts) => {
      const all = await seeded({ contracts: 5, linesEach: 1, renewals: 1 });
      all.remote.errorPaths = errorPaths;
      all.remote.breakField(all.remote.ids(kind)[1] ?? "", field);
      expect(await all.load()).toMatchObject(counts);
      expect(all.logged("not even its id")).toHaveLength(1);
    });

    test("is left out by a reconciliation, if it is an attempt whose contract fails", async () => {
      const all = await seededAndLoaded({ contracts: 5, linesEach: 1, renewals: 1 });
      all.remote.errorPaths = errorPaths;
      const [first = "", second = ""] = all.remote.ids("contract");
      const attempt = all.remote.startAttempt(first, 2);
      all.remote.breakField(attempt, "SubscriptionBillingAttempt.subscriptionContract");
      all.remote.failAttempt(all.remote.startAttempt(second, 2));
      all.test.clock.ms += HOUR_MS;
      expect(await all.reconcile()).toMatchObject({ skipped: 1 });
      expect(all.logged("not even its id")).toMatchObject([{ list: "attempts" }]);
      expect(await all.shop.all("orders")).toContainEqual(expect.objectContaining({ status: "FAILED" }));
    });
  },
);
