import { describe, expect, test } from "bun:test";
import { answerWith, connected, HOUR_MS, LINE, seeded, withContract } from "../../support/connected.ts";
import { pageOfNodes } from "../../support/platform-nodes.ts";

describe("data that cannot be mirrored", () => {
  test("is skipped and logged, and everything else is loaded", async () => {
    const all = await connected();
    all.remote.seed({ contracts: 3, renewals: 1 });
    all.createContract({ interval: "DAY", intervalCount: 100_001 });
    all.test.clock.ms += HOUR_MS;
    expect(await all.load()).toMatchObject({ subscriptions: 3, skipped: 1 });
    expect(JSON.stringify(all.logged("cannot be mirrored"))).toContain("intervalCount");
    expect(await all.inbox()).toMatchObject([{ topic: "subscription_contracts/update", status: "waiting" }]);
    expect(await all.shop.all("subscriptions")).toHaveLength(3);
  });

  test("is skipped for customers too", async () => {
    const all = await connected();
    const node = { id: "gid://shopify/Customer/7", firstName: "Ada", lastName: null, defaultEmailAddress: null };
    const nodes = [
      { ...node, updatedAt: "soon" },
      { ...node, id: "gid://shopify/Customer/8", updatedAt: "2026-01-01T00:00:00Z" },
    ];
    all.replaceAnswers("AllCustomers", answerWith({ customers: pageOfNodes(nodes) }));
    expect(await all.load()).toMatchObject({ customers: 1, skipped: 1 });
    expect(all.logged("a customer of the platform cannot be mirrored")).toHaveLength(1);
    expect(await all.shop.all("customers")).toMatchObject([{ shopifyId: "gid://shopify/Customer/8" }]);
  });

  test("is logged for the first customers one by one, and then as a number", async () => {
    const all = await connected();
    const id = (n: number) => `gid://shopify/Customer/${n}`;
    all.platform.fault = ({ operation, n }) => {
      if (operation !== "AllCustomers") return undefined;
      const nodes = Array.from({ length: 20 }, (_, index) => ({ id: id(100 * n + index), updatedAt: null }));
      return answerWith({ customers: pageOfNodes(nodes, n < 3 ? String(n) : null) });
    };
    expect(await all.load()).toMatchObject({ customers: 0, skipped: 60 });
    const warnings = all.logged("cannot be mirrored");
    expect(warnings).toHaveLength(6);
    expect(warnings[5]).toMatchObject({ more: 55 });
  });

  test.each([
    ["ends the sync if the platform refuses all of several contracts", 2, 400],
    ["does not hide that the shop is gone", 1, 404],
    ["does not hide that the platform is down", 1, 503],
  ])("%s", async (_title, contracts, status) => {
    const all = await seeded({ contracts });
    all.replaceAnswers("Nodes", { status });
    await expect(all.load()).rejects.toThrow(`HTTP ${status}`);
    expect(await all.inbox()).toEqual([]);
  });

  test("does not end the sync if it is the only contract", async () => {
    const { all } = await withContract();
    all.test.clock.ms += HOUR_MS;
    all.replaceAnswers("Nodes", { status: 400 });
    expect(await all.load()).toMatchObject({ subscriptions: 0, skipped: 1 });
  });

  test("is cut if its only fault is its length", async () => {
    const { all } = await withContract({ lines: [{ ...LINE, title: "x".repeat(2000) }] });
    all.test.clock.ms += HOUR_MS;
    await all.load();
    expect(await all.shop.all("subscriptions")).toMatchObject([{ lines: [{ title: "x".repeat(1024) }] }]);
  });
});

describe("data without access", () => {
  test("about products is taken from the contract, and logged once", async () => {
    const all = await connected();
    all.remote.scopes = ["read_own_subscription_contracts", "read_customers", "read_orders"];
    all.createContract({ customer: all.remote.createCustomer({ email: "a@example.com", firstName: "Ada" }) });
    await all.deliverAll();
    const lines = [{ title: "House blend", productId: LINE.product }];
    expect(await all.shop.all("orders")).toMatchObject([{ status: "PAID", subtotalCents: 2500, lines }]);
    expect(all.logged("has no access to a field")).toHaveLength(1);
  });

  test("about all customers ends the sync, and the mirror keeps what it has", async () => {
    const all = await connected();
    all.createContract({ customer: all.remote.createCustomer({ email: "a@example.com", firstName: "Ada" }) });
    await all.deliverAll();
    all.remote.scopes = ["read_own_subscription_contracts", "read_orders", "read_products"];
    all.test.clock.ms += HOUR_MS;
    await expect(all.load()).rejects.toThrow("Access denied");
    expect(await all.shop.all("customers")).toMatchObject([{ email: "a@example.com", firstName: "Ada" }]);
  });

  test("about names and addresses leaves the mirror's names and addresses as they are", async () => {
    const all = await connected();
    const customer = all.remote.createCustomer({ email: "a@example.com", firstName: "Ada", lastName: "Lovelace" });
    all.remote.setConsent(customer, "subscribed");
    await all.deliverAll();
    const updatedAt = "2026-06-01T00:00:00Z";
    const node = { id: customer, firstName: null, lastName: "Byron", updatedAt, defaultEmailAddress: null };
    // A denied field that cannot be null makes its parent null.
    const errors = [["firstName"], ["defaultEmailAddress", "emailAddress"]].map((field) => ({
      message: "Access denied",
      path: ["customers", "nodes", 0, ...field],
      extensions: { code: "ACCESS_DENIED" },
    }));
    all.replaceAnswers("AllCustomers", answerWith({ customers: pageOfNodes([node]) }, errors));
    all.test.clock.ms += 120 * 24 * HOUR_MS;
    await all.load();
    expect(await all.shop.all("customers")).toMatchObject([
      { email: "a@example.com", firstName: "Ada", lastName: "Byron", marketingConsent: true },
    ]);
  });

  test("about an order does not hide its charge", async () => {
    const { all, contract } = await withContract();
    const order = all.remote.succeedAttempt(all.remote.startAttempt(contract, 1));
    const body = '{"data":{"nodes":[null,null]}}';
    all.platform.fault = ({ operation }) => (operation === "Nodes" ? { status: 200, body } : undefined);
    all.test.clock.ms += 2 * HOUR_MS;
    await all.load();
    expect(await all.shop.all("subscriptions")).toMatchObject([{ cyclesCompleted: 1 }]);
    expect(await all.shop.all("orders")).toMatchObject([{ status: "PAID", shopifyId: order, totalCents: 2500 }]);
  });
});
